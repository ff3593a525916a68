import Glibc
import RunLoopKit
import RunLoopSimulation
import Testing

@testable import TTLStore

/// A store on virtual time, spoken to in inline commands.
private struct Shop {
    let simulation: Simulation
    let store: Store
    let commands: Commands

    init(_ simulation: Simulation) {
        self.simulation = simulation
        store = Store(on: simulation.loop)
        commands = Commands(store: store, loop: simulation.loop) { [("server_name", "test")] }
    }

    func callAsFunction(_ line: String) -> String {
        let bytes = Array((line + "\n").utf8)
        var parser = RequestParser()
        var reply = Reply()
        bytes.withUnsafeBufferPointer { bytes in
            _ = commands.perform(all: bytes, &parser, &reply)
        }
        return String(decoding: reply.bytes, as: UTF8.self).replacing("\r\n", with: "|")
    }
}

extension String {
    fileprivate func replacing(_ part: String, with other: String) -> String {
        var (result, rest) = ("", self[...])
        while let range = rest.firstRange(of: part) {
            result += rest[..<range.lowerBound] + other
            rest = rest[range.upperBound...]
        }
        return result + rest
    }
}

@Suite("Commands")
struct CommandsTests {
    /// Speaks to a store; each line is a command and its reply.
    private func talk(_ lines: (String, String)..., then: (Shop_) -> Void = { _ in }) {
        withSimulation { simulation in
            let shop = Shop(simulation)
            for (command, reply) in lines { #expect(shop(command) == reply, "\(command)") }
            then(Shop_(ask: shop.callAsFunction, simulation: simulation, store: shop.store))
        }
    }

    fileprivate struct Shop_ {
        let ask: (String) -> String
        let simulation: Simulation
        let store: Store
    }

    @Test("values are set, read, counted and deleted")
    func values() {
        talk(
            ("PING", "+PONG|"), ("ping hello", "$5|hello|"), ("ECHO x", "$1|x|"), ("GET a", "$-1|"),
            ("SET a 1", "+OK|"), ("get a", "$1|1|"), ("SET b 22", "+OK|"), ("EXISTS a b c a", ":3|"), ("DBSIZE", ":2|"),
            ("DEL a c", ":1|"), ("GET a", "$-1|"), ("FLUSHALL", "+OK|"), ("DBSIZE", ":0|"))
    }

    @Test("SET with NX and XX")
    func conditions() {
        talk(
            ("SET a 1 XX", "$-1|"), ("SET a 1 NX", "+OK|"), ("SET a 2 NX", "$-1|"), ("SET a 3 XX", "+OK|"),
            ("GET a", "$1|3|"), ("SET a 1 NX XX", "-ERR syntax error|"), ("SET a 1 EX", "-ERR syntax error|"),
            ("SET a 1 EX 1 PX 1", "-ERR syntax error|"), ("SET a 1 SOON", "-ERR syntax error|"),
            ("SET a 1 EX 0", "-ERR invalid expire time in 'set' command|"),
            ("SET a 1 EX x", "-ERR value is not an integer or out of range|"))
    }

    @Test("numbers count up, within 64 bits")
    func increments() {
        talk(
            ("INCR n", ":1|"), ("INCR n", ":2|"), ("SET n 9223372036854775807", "+OK|"),
            ("INCR n", "-ERR increment or decrement would overflow|"), ("SET n x", "+OK|"),
            ("INCR n", "-ERR value is not an integer or out of range|"))
    }

    @Test("keys expire at their time, not before; a new value or PERSIST ends that")
    func expiry() {
        talk(
            ("SET a 1 EX 10", "+OK|"), ("TTL a", ":10|"), ("PTTL a", ":10000|"), ("SET b 1 PX 1500", "+OK|"),
            ("EXPIRE c 1", ":0|"), ("SET c 1", "+OK|"), ("TTL c", ":-1|"), ("TTL d", ":-2|"), ("EXPIRE c 3", ":1|"),
            ("SET e 1 EX 5", "+OK|"), ("PERSIST e", ":1|"), ("PERSIST e", ":0|"), ("SET f 1 EX 5", "+OK|"),
            ("SET f 2", "+OK|")
        ) { shop in
            shop.simulation.advance(to: RunLoop.Instant(nanoseconds: 1_499_999_999))
            #expect(shop.ask("EXISTS a b c e f") == ":5|")
            shop.simulation.advance(by: .nanoseconds(1))
            #expect(shop.ask("EXISTS a b c e f") == ":4|")
            #expect(shop.ask("PEXPIRE c 100") == ":1|")
            shop.simulation.advance(by: .milliseconds(100))
            #expect(shop.ask("GET c") == "$-1|")
            shop.simulation.advance(by: .seconds(100))
            #expect(shop.ask("EXISTS a b c e f") == ":2|")
            #expect(shop.store.expired == 3)
            #expect(shop.ask("EXPIRE e -1") == ":1|")
            #expect(shop.ask("DBSIZE") == ":1|")
        }
    }

    @Test("times beyond the clock's 292 years are that much, and one of PEXPIRE is not cut down to weeks")
    func longExpiry() {
        talk(
            ("SET a 1 EX 9000000000000000", "+OK|"), ("TTL a", ":9223372037|"), ("PEXPIRE a 99999999999", ":1|"),
            ("PTTL a", ":99999999999|"), ("EXPIRE a 9223372036854", ":1|"), ("TTL a", ":9223372037|"))
    }

    @Test("INCR keeps the time to live")
    func incrementKeepsExpiry() {
        talk(("SET n 1 EX 10", "+OK|"), ("INCR n", ":2|"), ("TTL n", ":10|"))
    }

    @Test("what is wrong is said as clients know it")
    func errors() {
        talk(
            ("NOPE a b", "-ERR unknown command 'NOPE', with args beginning with: 'a' 'b' |"),
            ("GET", "-ERR wrong number of arguments for 'get' command|"),
            ("SET a", "-ERR wrong number of arguments for 'set' command|"),
            ("AVERYLONGCOMMANDNAME", "-ERR unknown command 'AVERYLONGCOMMANDNAME', with args beginning with: |"),
            ("CONFIG GET save", "*2|$4|save|$0||"), ("COMMAND DOCS", "*0|"),
            ("SUBSCRIBE x", "-ERR unknown command 'SUBSCRIBE', with args beginning with: 'x' |"),
            ("EXPIRE a 1 GT", "-ERR Unsupported option GT|"), ("SET a 1 KEEPTTL", "-ERR syntax error|"))
    }

    @Test("random requests and odd ones are replied to byte for byte as redis-server 7.0 does")
    func transcript() throws {
        let lines = try Transcript.lines()
        #expect(lines.count > 1_500)
        withSimulation { simulation in
            let store = Store(on: simulation.loop)
            let commands = Commands(store: store, loop: simulation.loop) { [] }
            for (number, line) in lines.enumerated() {
                let reply = Transcript.reply(to: line.request, commands)
                #expect(
                    reply == line.reply,
                    "line \(number + 1): \(String(decoding: reply, as: UTF8.self)) to \(line.text)")
            }
        }
    }

    @Test("a hundred thousand keys expire, each at its own time")
    func manyKeys() {
        talk { shop in
            for key in 0..<100_000 {
                shop.store.set(Key(Array("\(key)".utf8)), [1], expiry: RunLoop.Instant(nanoseconds: Int64(key) * 1_000))
            }
            shop.simulation.advance(to: RunLoop.Instant(nanoseconds: 49_999_000))
            #expect(shop.store.count == 50_000)
            shop.simulation.advance(by: .seconds(1))
            #expect(shop.store.count == 0)
            #expect(shop.store.expired == 100_000)
        }
    }
}

@Suite("Snapshots")
struct SnapshotTests {
    private func withPath(_ body: (String) throws -> Void) rethrows {
        let path = "/tmp/rlk-snapshot-\(getpid())-\(UInt32.random(in: 0 ... .max))"
        defer { unlink(path) }
        try body(path)
    }

    @Test("what was written is read again, with times to live, and any bytes")
    func roundTrip() throws {
        try withPath { path in
            try withSimulation { simulation in
                let loop = simulation.loop
                let store = Store(on: loop)
                store.set(Key([0, 13, 10, 255]), [10, 0], expiry: nil)
                store.set(Key([1]), [], expiry: loop.now + .seconds(100))
                store.set(Key([]), Array(repeating: 7, count: 3_000_000), expiry: nil)
                try Snapshot(path: path).write(store, on: loop)
                let other = Store(on: loop)
                try Snapshot(path: path).load(into: other, on: loop)
                #expect(other.count == 3)
                #expect(other.value(of: Key([0, 13, 10, 255])) == [10, 0])
                #expect(other.value(of: Key([]))?.count == 3_000_000)
                let left = other.expiry(of: Key([1]))! - loop.now
                #expect(left <= .seconds(100) && left > .seconds(90))
            }
        }
    }

    @Test("without a file there is nothing to load; a part of one, or another file, is refused")
    func malformed() throws {
        try withPath { path in
            try withSimulation { simulation in
                let store = Store(on: simulation.loop)
                let snapshot = Snapshot(path: path)
                try snapshot.load(into: store, on: simulation.loop)
                #expect(store.count == 0)
                for key in 0..<10 { store.set(Key([UInt8(key)]), [1, 2, 3], expiry: nil) }
                try snapshot.write(store, on: simulation.loop)
                var size = stat()
                stat(path, &size)
                for length in stride(from: Int(size.st_size) - 1, through: 0, by: -7) {
                    truncate(path, length)
                    #expect(throws: Snapshot.Failure.self) {
                        try snapshot.load(into: Store(on: simulation.loop), on: simulation.loop)
                    }
                }
            }
        }
    }

    @Test("if it cannot be written the old file stays, and nothing is left beside it")
    func fullDisk() {
        withSimulation { simulation in
            let store = Store(on: simulation.loop)
            store.set(Key([1]), [2], expiry: nil)
            let error = #expect(throws: Snapshot.Failure.self) {
                try Snapshot(path: "/proc/nowhere/snapshot").write(store, on: simulation.loop)
            }
            #expect(error?.description.contains("open /proc/nowhere/snapshot") == true)
            #expect(store.count == 1)
        }
    }
}
