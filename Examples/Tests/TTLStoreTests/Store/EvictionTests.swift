import RunLoopKit
import RunLoopSimulation
import Testing

@testable import TTLStore

@Suite("Memory for keys and values")
struct EvictionTests {
    private func settings(_ most: Int, _ policy: Store.Eviction) -> Commands.Settings {
        var settings = Commands.Settings()
        (settings.maximumMemory, settings.eviction) = (most, policy)
        return settings
    }

    @Test("without a policy, a command that needs more memory is refused, and every other one works")
    func refused() {
        talk(settings: settings(10_000, .none)) { shop in
            let value = String(repeating: "x", count: 1_000)
            while shop("SET k\(shop.store.count) \(value)") == "+OK|" {}
            #expect(shop.store.count < 12)
            #expect(shop("SET new 1") == "-OOM command not allowed when used memory > 'maxmemory'.|")
            #expect(shop("APPEND k0 x") == "-OOM command not allowed when used memory > 'maxmemory'.|")
            #expect(shop("STRLEN k0") == ":1000|")
            #expect(shop("DEL k0 k1 k2") == ":3|")
            #expect(shop("SET new 1") == "+OK|")
        }
    }

    @Test("keys with the least time to live go first, and those without one stay")
    func soonest() {
        talk(settings: settings(50_000, .soonest)) { shop in
            for key in 0..<20 { #expect(shop("SET keep\(key) 1") == "+OK|") }
            for key in 0..<1_000 { #expect(shop("SET k\(key) 1 EX \(10_000 - key)") == "+OK|") }
            #expect(shop("EXISTS " + (0..<20).map { "keep\($0) " }.joined()) == ":20|")
            #expect(shop.store.table.usedMemory <= 50_400)
            #expect(shop.store.table.evicted > 800)
            // Each is chosen among some keys, so that the removed ones are early, but not necessarily the earliest.
            let left = (0..<1_000).filter { shop("EXISTS k\($0)") == ":1|" }
            #expect(shop.store.table.evicted + left.count == 1_000)
            for key in left { _ = shop("DEL k\(key)") }
            let value = String(repeating: "x", count: 60_000)
            #expect(shop("SET big \(value)") == "+OK|")
            #expect(shop("SET new 1").hasPrefix("-OOM"))
        }
    }

    @Test("any key may go")
    func random() {
        talk(settings: settings(50_000, .random)) { shop in
            for key in 0..<1_000 { #expect(shop("SET k\(key) 1") == "+OK|") }
            #expect(shop.store.table.usedMemory <= 50_400)
            #expect(shop.store.table.evicted + shop.store.count == 1_000)
        }
    }

    @Test("the counts match the contents after any kind of change")
    func books() {
        talk { shop in
            for command in [
                "SET a 12345", "SET b 1 EX 10", "APPEND a 678", "SETRANGE b 10 x", "EXPIRE a 10", "PERSIST b", "INCR c",
                "GETDEL c", "SET a 1", "PERSIST a", "EXPIRE a 100", "EXPIRE a 200", "SET a 1 KEEPTTL",
            ] { #expect(!shop(command).hasPrefix("-"), "\(command)") }
            #expect(shop.store.countWithExpiry == 1)
            shop.simulation.advance(by: .seconds(1_000))
            #expect(shop("DEL b") == ":1|")
            #expect(shop.store.count == 0)
            #expect(shop.store.table.usedMemory == 0)
            #expect(shop.store.countWithExpiry == 0)
        }
    }
}
