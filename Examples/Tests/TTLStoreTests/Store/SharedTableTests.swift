import ExampleTestSupport
import RunLoopKit
import RunLoopSimulation
import RunLoopUnix
import Testing

@testable import TTLStore

@Suite("Keys that several loops share")
struct SharedTableTests {
    /// A loop's store in a test.
    private static let shop = RunLoop.Local<Shop?> { _ in nil }

    private static func group(
        _ count: Int, _ simulation: Simulation, sharing table: Table, _ audience: Audience = Audience()
    ) throws -> LoopGroup {
        try LoopGroup(count: count) { loop, _ in
            loop[shop] = Shop(simulation, on: loop, sharing: table, audience)
        }
    }

    /// Returns a command for one of three keys with times to live of some milliseconds, so that they meet often.
    private static func command(using random: inout SeededGenerator) -> String {
        let key = "k\(Int.random(in: 0..<3, using: &random))"
        let other = "k\(Int.random(in: 0..<3, using: &random))"
        let time = Int.random(in: -1...30, using: &random)
        let value = Int.random(in: 0..<100, using: &random)
        return [
            "GET \(key)", "SET \(key) \(value)", "SET \(key) \(value) PX \(max(1, time))",
            "SET \(key) \(value) KEEPTTL", "SET \(key) \(value) NX GET", "PSETEX \(key) \(max(1, time)) \(value)",
            "GETDEL \(key)",
            "GETEX \(key) PERSIST", "GETEX \(key) PX \(max(1, time))", "MGET \(key) \(other)",
            "MSET \(key) \(value) \(other) 1", "MSETNX \(key) \(value) \(other) 1", "APPEND \(key) 1", "INCR \(key)",
            "PEXPIRE \(key) \(time)", "PEXPIRE \(key) \(time) GT", "PEXPIRE \(key) \(time) LT", "PERSIST \(key)",
            "PTTL \(key)", "DEL \(key) \(other)", "EXISTS \(key) \(other)", "DBSIZE",
            Int.random(in: 0..<20, using: &random) == 0 ? "FLUSHALL" : "STRLEN \(key)",
        ].randomElement(using: &random)!
    }

    @Test("a command gets the same reply on each loop as from a store on one loop", arguments: 0..<20)
    func sameAsOne(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        try withSimulation { simulation in
            let one = Shop(simulation)
            let table = Table()
            let group = try Self.group(3, simulation, sharing: table)
            for step in 0..<500 {
                let command = Self.command(using: &random)
                let loop = group.loops.randomElement(using: &random)!
                let reply = try loop.performAndWait { $0[Self.shop]!(command) }
                #expect(reply == one(command), "seed \(seed), step \(step): \(command)")
                if Int.random(in: 0..<5, using: &random) == 0 {
                    simulation.advance(by: .microseconds(.random(in: 100...9_000, using: &random)))
                }
            }
            simulation.advance(by: .seconds(1))
            #expect(table.expired == one.store.table.expired, "seed \(seed)")
            #expect(table.usedMemory == one.store.table.usedMemory, "seed \(seed)")
            #expect(table.countWithExpiry == one.store.table.countWithExpiry, "seed \(seed)")
            // No timer of a removed key is left anywhere.
            _ = try group.loops[0].performAndWait { $0[Self.shop]!("FLUSHALL") }
            simulation.advance(by: .milliseconds(1))
            for loop in group.loops {
                #expect(try loop.performAndWait { $0.dump().items.count { $0.kind == .delayedCall } } == 0)
            }
            group.stop()
            group.join()
        }
    }

    @Test("a subscriber is notified of a key once, regardless of the loops on which it was set and expires")
    func notices() throws {
        try withSimulation { simulation in
            let group = try Self.group(3, simulation, sharing: Table())
            func on(_ loop: Int, _ command: String) throws -> String {
                try group.loops[loop].performAndWait { $0[Self.shop]!(command) }
            }
            #expect(try on(0, "SUBSCRIBE __keyevent@0__:expired").contains(":1|"))
            #expect(try on(1, "PSUBSCRIBE __keyevent*").contains(":1|"))
            for loop in 0..<3 {
                #expect(try on(loop, "INFO").contains(loop == 2 ? "pubsub_channels:1" : "only (P|S)SUBSCRIBE"))
            }
            #expect(try on(2, "SET a 1 PX 20") == "+OK|")
            #expect(try on(2, "SET b 1 PX 30") == "+OK|")
            simulation.advance(by: .milliseconds(100))
            func notices(_ loop: Int) throws -> String {
                try group.loops[loop].performAndWait { $0[Self.shop]!.notices.text }
            }
            let notice = "*3|$7|message|$22|__keyevent@0__:expired|$1|"
            #expect(try notices(0) == notice + "a|" + notice + "b|")
            #expect(try notices(1).count(of: "pmessage") == 2)
            #expect(try notices(2) == "")
            group.stop()
            group.join()
        }
    }

    @Test("on concurrent threads each command is atomic, and the counts match the contents")
    func atOnce() throws {
        let table = Table()
        let bound = Log<LoopBound<Commands>>()
        let group = try LoopGroup(count: 3) { loop, _ in
            let commands = Commands(store: Store(on: loop, sharing: table), channels: Channels(on: loop))
            bound.append(LoopBound(commands, loop: loop))
        }
        let wrong = Log<String>()
        let rounds = 300
        // Three at a time on each loop, so that none finishes before the others begin.
        for (number, commands) in bound.entries.enumerated() {
            for part in 0..<3 {
                commands.remote.perform { loop in
                    var random = SeededGenerator(seed: UInt64(10 * number + part))
                    let keys = (0..<8).map { "m\($0)" }
                    for round in 0..<rounds {
                        func say(_ words: [String]) -> String { commands.value.reply(to: words) }
                        let value = "\(number).\(part).\(round)"
                        let order = keys.shuffled(using: &random)
                        if say(["MSET"] + order.flatMap { [$0, value] }) != "+OK|" { wrong("MSET") }
                        let values = Set(say(["MGET"] + order).split(separator: "|").filter { $0.contains(".") })
                        if values.count != 1 { wrong("MGET: \(values)") }
                        _ = say(["INCR", "sum"])
                        _ = say(["MSETNX", "winner\(round)", "1", "x\(round)", "1"])
                        if say(["SET", "t\(round)", "1", "PX", "\(Int.random(in: 1...3, using: &random))"]) != "+OK|" {
                            wrong("SET PX")
                        }
                        _ = say(["PEXPIRE", "t\(Int.random(in: 0...round, using: &random))", "2"])
                        _ = say(["DEL", "t\(Int.random(in: 0...round, using: &random))"])
                        let exists = say(["EXISTS", "winner\(round)", "x\(round)"])
                        if exists != ":2|" { wrong("MSETNX: \(exists)") }
                        if round % 100 == 50 { _ = say(["KEYS", "*"]) }
                    }
                }
            }
        }
        let done = Flag()
        group.performOnEach({ _ in }) { done.set() }
        #expect(eventually { done.isSet })
        #expect(wrong.entries == [])
        let first = bound.entries[0]
        func say(_ words: String...) -> String? {
            try? first.remote.performAndWait { _ in first.value.reply(to: words) }
        }
        #expect(say("GET", "sum")?.hasSuffix("|\(9 * rounds)|") == true)
        // Keys with a time to live are gone soon.
        #expect(eventually { say("DBSIZE") == ":\(8 + 1 + 2 * rounds)|" })
        #expect(say("FLUSHALL") == "+OK|")
        #expect(table.usedMemory == 0)
        #expect(table.withLocks(of: .all) { table.countWithExpiry } == 0)
        group.stop()
        group.join()
    }
}

extension Commands {
    fileprivate func reply(to words: [String]) -> String {
        let request = "*\(words.count)\r\n" + words.map { "$\($0.utf8.count)\r\n\($0)\r\n" }.joined()
        var parser = RequestParser()
        var reply = Reply()
        Array(request.utf8).withUnsafeBufferPointer { bytes in
            _ = perform(all: bytes, &parser, Session(), &reply)
        }
        return String(decoding: reply.bytes, as: UTF8.self).split(separator: "\r\n", omittingEmptySubsequences: false)
            .joined(separator: "|")
    }
}

extension String {
    fileprivate func count(of text: String) -> Int {
        split(separator: text, omittingEmptySubsequences: false).count - 1
    }
}
