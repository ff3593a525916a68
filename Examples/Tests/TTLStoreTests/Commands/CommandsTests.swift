import ExampleTestSupport
import Glibc
import RunLoopKit
import RunLoopSimulation
import Testing

@testable import TTLStore

@Suite("Commands")
struct CommandsTests {
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
            #expect(shop("EXISTS a b c e f") == ":5|")
            shop.simulation.advance(by: .nanoseconds(1))
            #expect(shop("EXISTS a b c e f") == ":4|")
            #expect(shop("PEXPIRE c 100") == ":1|")
            shop.simulation.advance(by: .milliseconds(100))
            #expect(shop("GET c") == "$-1|")
            shop.simulation.advance(by: .seconds(100))
            #expect(shop("EXISTS a b c e f") == ":2|")
            #expect(shop.store.table.expired == 3)
            #expect(shop("EXPIRE e -1") == ":1|")
            #expect(shop("DBSIZE") == ":1|")
        }
    }

    @Test("times beyond the loop's 292 years are dates all the same, and one of PEXPIRE is not cut down to weeks")
    func longExpiry() {
        talk(
            ("SET a 1 EX 9000000000000000", "+OK|"), ("TTL a", ":9000000000000000|"), ("PEXPIRE a 99999999999", ":1|"),
            ("PTTL a", ":99999999999|"), ("EXPIRE a 9223370000000000", ":1|"), ("TTL a", ":9223370000000000|"),
            ("PEXPIREAT a 9223372036854775807", ":1|"), ("PEXPIRETIME a", ":9223372036854775806|"),
            ("PERSIST a", ":1|"), ("TTL a", ":-1|"))
    }

    @Test("dates are calendar dates, regardless of where the loop's clock begins")
    func dates() {
        talk(
            ("SET a 1 EXAT 1790000010", "+OK|"), ("TTL a", ":10|"), ("EXPIRETIME a", ":1790000010|"),
            ("PEXPIREAT a 1790000000500", ":1|"), ("PTTL a", ":500|"), ("SET b 1 EX 100", "+OK|"),
            ("EXPIRETIME b", ":1790000100|"), ("PEXPIRETIME b", ":1790000100000|"), ("SET c 1", "+OK|"),
            ("EXPIRETIME c", ":-1|"), ("PEXPIRETIME d", ":-2|"), ("TIME", "*2|$10|1790000000|$1|0|"),
            ("SET e 1", "+OK|"), ("EXPIREAT e 1789999999", ":1|"), ("EXISTS e", ":0|"),
            ("SET f 1 PXAT 1", "+OK|"), ("GET f", "$-1|")
        ) { shop in
            shop.simulation.advance(by: .milliseconds(499))
            #expect(shop("EXISTS a") == ":1|")
            shop.simulation.advance(by: .milliseconds(1))
            #expect(shop("EXISTS a") == ":0|")
        }
    }

    @Test("conditions of EXPIRE")
    func expiryConditions() {
        talk(
            ("SET a 1", "+OK|"), ("EXPIRE a 100 XX", ":0|"), ("EXPIRE a 100 GT", ":0|"), ("EXPIRE a 100 LT", ":1|"),
            ("EXPIRE a 200 NX", ":0|"), ("EXPIRE a 50 GT", ":0|"), ("EXPIRE a 200 GT", ":1|"),
            ("EXPIRE a 300 LT", ":0|"), ("EXPIRE a 100 XX LT", ":1|"), ("TTL a", ":100|"),
            ("EXPIRE a 1 NX GT", "-ERR NX and XX, GT or LT options at the same time are not compatible|"),
            ("EXPIRE a 1 LT GT", "-ERR GT and LT options at the same time are not compatible|"),
            ("PEXPIREAT a 1 SOON", "-ERR Unsupported option SOON|"))
    }

    @Test("a key whose time has come is not served, even if its timer has had no chance to fire")
    func expiryWithinABatch() {
        talk(
            ("SET a 1 PX 100", "+OK|"), ("SET b 1 PX 100", "+OK|"),
            ("SUBSCRIBE __keyevent@0__:expired", "*3|$9|subscribe|$22|__keyevent@0__:expired|:1|"), ("RESET", "+RESET|")
        ) { shop in
            // As long requests would, in the middle of a batch: the loop makes no pass.
            shop.simulation.spend(.milliseconds(100))
            for (command, reply) in [
                ("GET a", "$-1|"), ("EXISTS b", ":0|"), ("TTL b", ":-2|"), ("KEYS *", "*0|"), ("DBSIZE", ":0|"),
                ("EXPIRE a 10", ":0|"),
            ] { #expect(shop(command) == reply, "\(command)") }
            #expect(shop.store.table.expired == 2)
            shop.simulation.advance(by: .seconds(1))
            #expect(shop.store.table.expired == 2, "each expires once")
        }
    }

    @Test("parts of values")
    func parts() {
        talk(
            ("APPEND a Hello", ":5|"), ("APPEND a World", ":10|"), ("STRLEN a", ":10|"), ("STRLEN b", ":0|"),
            ("GETRANGE a 0 4", "$5|Hello|"), ("GETRANGE a -5 -1", "$5|World|"), ("SUBSTR a 3 100", "$7|loWorld|"),
            ("GETRANGE a 5 4", "$0||"), ("GETRANGE b 0 -1", "$0||"), ("SETRANGE a 5 Swift", ":10|"),
            ("GET a", "$10|HelloSwift|"), ("SETRANGE c 2 x", ":3|"), ("GET c", "$3|\0\0x|"),
            ("SETRANGE d 5 ''", ":0|"), ("EXISTS d", ":0|"), ("SETRANGE d -1 x", "-ERR offset is out of range|"),
            ("SETRANGE d 8388608 x", "-ERR string exceeds maximum allowed size (proto-max-bulk-len)|"),
            ("SETRANGE d 9223372036854775807 x", "-ERR string exceeds maximum allowed size (proto-max-bulk-len)|"))
    }

    @Test("commands with several keys at once")
    func several() {
        talk(
            ("MSET a 1 b 2", "+OK|"), ("MGET a b c", "*3|$1|1|$1|2|$-1|"), ("MSETNX c 3 a 4", ":0|"),
            ("EXISTS c", ":0|"), ("MSETNX c 3 d 4", ":1|"),
            ("MSET a", "-ERR wrong number of arguments for 'mset' command|"),
            ("MSET a 1 b", "-ERR wrong number of arguments for 'mset' command|"), ("GETSET a 5", "$1|1|"),
            ("GETDEL a", "$1|5|"), ("GETDEL a", "$-1|"), ("SETNX a 1", ":1|"), ("SETNX a 2", ":0|"),
            ("UNLINK a b c", ":3|"), ("SETEX a 10 1", "+OK|"), ("TTL a", ":10|"), ("PSETEX a 1500 1", "+OK|"),
            ("PTTL a", ":1500|"), ("GETEX a", "$1|1|"), ("GETEX a EX 20", "$1|1|"), ("TTL a", ":20|"),
            ("GETEX a PERSIST", "$1|1|"), ("TTL a", ":-1|"), ("GETEX a KEEPTTL", "-ERR syntax error|"),
            ("SET a 2 GET", "$1|1|"), ("SET a 3 NX GET", "$1|2|"), ("GET a", "$1|2|"), ("EXPIRE a 9", ":1|"),
            ("SET a 4 KEEPTTL", "+OK|"), ("TTL a", ":9|"), ("SET a 4 KEEPTTL EX 1", "-ERR syntax error|"))
    }

    @Test("SCAN visits all keys, regardless of changes to others meanwhile")
    func scan() {
        talk { shop in
            for key in 0..<20_000 { _ = shop("SET k\(key) 1") }
            var seen: [String] = []
            var cursor = "0"
            repeat {
                let lines = shop("SCAN \(cursor) COUNT 100 MATCH k*").split(separator: "|").map(String.init)
                cursor = lines[2]
                seen += lines.filter { $0.hasPrefix("k") }
                #expect(lines.count < 600)
                // The table grows and shrinks.
                for _ in 0..<100 {
                    _ = shop("SET x\(Int.random(in: 0..<10_000)) 1")
                    _ = shop("DEL x\(Int.random(in: 0..<10_000))")
                }
            } while cursor != "0"
            #expect(seen.count == 20_000)
            #expect(Set(seen).count == 20_000)
            #expect(shop("SCAN 18446744073709551615") == "*2|$1|0|*0|")
            #expect(shop("SCAN -x") == "-ERR invalid cursor|")
            #expect(shop("SCAN 0 COUNT 0") == "-ERR syntax error|")
            #expect(shop("SCAN 0 TYPE hash COUNT 10") == "*2|$1|0|*0|")
        }
    }

    @Test("the third version of the protocol has its own nulls, maps and messages")
    func thirdVersion() {
        talk(
            ("HELLO 4", "-NOPROTO unsupported protocol version|"),
            ("HELLO x", "-ERR Protocol version is not an integer or out of range|"),
            (
                "HELLO 3 SETNAME me",
                "%7|$6|server|$8|ttlstore|$7|version|$6|7.0.15|$5|proto|:3|$2|id|:1|$4|mode|$10|standalone|$4|role|"
                    + "$6|master|$7|modules|*0|"
            ),
            ("CLIENT GETNAME", "$2|me|"), ("GET a", "_|"), ("MGET a", "*1|_|"), ("CONFIG GET save", "%1|$4|save|$0||"),
            ("SUBSCRIBE c", ">3|$9|subscribe|$1|c|:1|"), ("SET a 1", "+OK|"), ("RESET", "+RESET|"), ("GET b", "$-1|"))
    }

    @Test("clients have names and numbers")
    func clients() {
        talk(
            ("CLIENT ID", ":1|"), ("CLIENT GETNAME", "$-1|"), ("CLIENT SETNAME me", "+OK|"),
            ("CLIENT GETNAME", "$2|me|"), ("CLIENT SETINFO LIB-NAME x", "+OK|"),
            ("CLIENT SETINFO x y", "-ERR Unrecognized option 'x'|"),
            ("CLIENT SETNAME", "-ERR wrong number of arguments for 'client|setname' command|"),
            ("CLIENT SETNAME 'a b'", "-ERR Client names cannot contain spaces, newlines or special characters.|"),
            ("CLIENT NOPE", "-ERR unknown subcommand 'NOPE'. Try CLIENT HELP.|"))
    }

    @Test("a subscriber is notified of each key that expires, at its time, and of no other")
    func subscriptions() {
        talk(
            ("PSUBSCRIBE __keyspace@0__:a*", "*3|$10|psubscribe|$17|__keyspace@0__:a*|:1|"),
            ("SUBSCRIBE __keyevent@0__:expired", "*3|$9|subscribe|$22|__keyevent@0__:expired|:2|"),
            ("PING", "*2|$4|pong|$0||"), ("PING x", "*2|$4|pong|$1|x|"),
            (
                "GET a",
                "-ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in "
                    + "this context|"
            )
        ) { shop in
            let time = { Expiry(date: Shop.begin + $0, instant: RunLoop.Instant(nanoseconds: Int64($0) * 1_000_000)) }
            shop.store.set(Key(Array("ab".utf8)), [], expiry: time(100))
            shop.store.set(Key(Array("b".utf8)), [], expiry: time(200))
            shop.store.set(Key(Array("c".utf8)), [])
            _ = shop.store.remove(Key(Array("c".utf8)))
            shop.simulation.advance(by: .milliseconds(99))
            #expect(shop.notices.text == "")
            shop.simulation.advance(by: .milliseconds(1))
            #expect(
                shop.notices.text
                    == "*4|$8|pmessage|$17|__keyspace@0__:a*|$17|__keyspace@0__:ab|$7|expired|"
                    + "*3|$7|message|$22|__keyevent@0__:expired|$2|ab|")
            shop.notices.text = ""
            shop.simulation.advance(by: .milliseconds(100))
            #expect(shop.notices.text == "*3|$7|message|$22|__keyevent@0__:expired|$1|b|")
            #expect(shop("UNSUBSCRIBE nothing") == "*3|$11|unsubscribe|$7|nothing|:2|")
            #expect(shop("UNSUBSCRIBE") == "*3|$11|unsubscribe|$22|__keyevent@0__:expired|:1|")
            #expect(shop("PUNSUBSCRIBE") == "*3|$12|punsubscribe|$17|__keyspace@0__:a*|:0|")
            #expect(shop("PUNSUBSCRIBE") == "*3|$12|punsubscribe|$-1|:0|")
            #expect(shop("PING") == "+PONG|")
        }
    }

    @Test("a reply that would be too long is an error, and takes no more memory than is allowed")
    func longReplies() {
        talk { shop in
            shop.store.set(Key([97]), [UInt8](repeating: 120, count: 1_000_000))
            #expect(
                shop("MGET " + String(repeating: "a ", count: 10_000)) == "-ERR the reply would be longer than 16 MiB|")
            #expect(shop("MGET a a").count == 2_000_023)
            #expect(shop("PING") == "+PONG|")
        }
    }

    @Test("requests wait while enough replies are pending")
    func mark() {
        withSimulation { simulation in
            let shop = Shop(simulation)
            shop.store.set(Key([97]), [UInt8](repeating: 120, count: 1000))
            let requests = Array(String(repeating: "GET a\n", count: 100).utf8)
            var parser = RequestParser()
            var reply = Reply()
            requests.withUnsafeBufferPointer { bytes in
                var start = 0
                for _ in 0..<10 {
                    reply.removeAll()
                    let rest = UnsafeBufferPointer(rebasing: bytes[start...])
                    let batch = shop.commands.perform(all: rest, &parser, shop.session, &reply, mark: 10_000)
                    #expect(batch.requests == 10)
                    #expect(batch.end == .mark)
                    start += batch.used
                }
                #expect(start == bytes.count)
            }
        }
    }

    @Test("INCR keeps the time to live")
    func incrementKeepsExpiry() {
        talk(("SET n 1 EX 10", "+OK|"), ("INCR n", ":2|"), ("TTL n", ":10|"))
    }

    @Test("errors are worded as clients know them")
    func errors() {
        talk(
            ("NOPE a b", "-ERR unknown command 'NOPE', with args beginning with: 'a' 'b' |"),
            ("GET", "-ERR wrong number of arguments for 'get' command|"),
            ("SET a", "-ERR wrong number of arguments for 'set' command|"),
            ("AVERYLONGCOMMANDNAME", "-ERR unknown command 'AVERYLONGCOMMANDNAME', with args beginning with: |"),
            ("CONFIG GET save", "*2|$4|save|$0||"),
            ("CONFIG GET maxmemory*", "*4|$9|maxmemory|$1|0|$16|maxmemory-policy|$10|noeviction|"),
            ("COMMAND DOCS", "*0|"),
            ("LPUSH x y", "-ERR unknown command 'LPUSH', with args beginning with: 'x' 'y' |"))
    }

    @Test("random requests and odd ones are replied to byte for byte as redis-server 7.0 does")
    func transcript() throws {
        let lines = try Transcript.lines()
        #expect(lines.count > 1_500)
        withSimulation { simulation in
            let shop = Shop(simulation)
            for (number, line) in lines.enumerated() {
                let reply = Transcript.reply(to: line.request, shop.commands)
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
                let expiry = Expiry(date: Shop.begin, instant: RunLoop.Instant(nanoseconds: Int64(key) * 1_000))
                shop.store.set(Key(Array("\(key)".utf8)), [1], expiry: expiry)
            }
            shop.simulation.advance(to: RunLoop.Instant(nanoseconds: 49_999_000))
            #expect(shop.store.count == 50_000)
            shop.simulation.advance(by: .seconds(1))
            #expect(shop.store.count == 0)
            #expect(shop.store.table.expired == 100_000)
        }
    }

    // MARK: Extremes

    @Test("no argument of any kind traps, and all stored keys can be written down and read again", arguments: 0..<30)
    func extremes(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let numbers = [
            "0", "1", "-1", "2", "7500000000000", "9223372036854775807", "-9223372036854775808", "9223372036854775806",
            "-9223372036854775807", "9223372036854775", "-9223372036854776", "9223370246854775", "4294967296",
            "8388607", "8388608", "1e308", "-1e308", "0.1",
            "18446744073709551615", "99999999999999999999", "", "x", "nan", "inf", "-0",
        ]
        let words = [
            "EX", "PX", "EXAT", "PXAT", "KEEPTTL", "PERSIST", "GET", "NX", "XX", "GT", "LT", "MATCH", "COUNT", "TYPE",
            "*", "[a-", "\\", "2", "3", "SETNAME", "AUTH", "SETINFO", "ID", "ASYNC",
        ]
        let keys = ["a", "b", "c", "", "\0"]
        let commands =
            (Commands.strings + Commands.numbers + Commands.expiry + Commands.keys + Commands.server
            + Commands.subscribing).map { "\($0.spelling)" }
        try withSimulation { simulation in
            let shop = Shop(simulation)
            for _ in 0..<400 {
                var request = [commands.randomElement(using: &random)!]
                for index in 0..<Int.random(in: 0...5, using: &random) {
                    let pool =
                        index == 0 && Int.random(in: 0..<8, using: &random) > 0
                        ? keys : Bool.random(using: &random) ? numbers : words
                    request.append(pool.randomElement(using: &random)!)
                }
                let bytes = "*\(request.count)\r\n" + request.map { "$\($0.utf8.count)\r\n\($0)\r\n" }.joined()
                _ = shop.reply(to: Array(bytes.utf8))
                shop.session.isOver = false
                if Int.random(in: 0..<10, using: &random) == 0 { _ = shop("RESET") }
                if Int.random(in: 0..<20, using: &random) == 0 { simulation.advance(by: .milliseconds(500)) }
            }
            var bytes = Array(Frame.Kind.log.rawValue.utf8)
            let frame = Dump().next(of: shop.store.table)
            bytes += Frame.head(length: frame.count, sum: frame.withUnsafeBytes { Checksum.of($0) }) + frame
            let copy = Shop.store(simulation)
            if !frame.isEmpty { _ = try bytes.withUnsafeBytes { try Frame.read($0, .log, copy.restore) } }
            simulation.advance(by: .milliseconds(1))
            copy.endRestoring()
            for key in keys.map({ Key(Array($0.utf8)) }) {
                #expect(copy.value(of: key) == shop.store.value(of: key), "seed \(seed)")
                #expect(copy.date(of: key) == shop.store.date(of: key), "seed \(seed)")
            }
        }
    }
}
