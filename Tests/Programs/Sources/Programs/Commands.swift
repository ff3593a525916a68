import RunLoopHosts
import RunLoopSimulation

/// Random commands that redis-server and TTLStore answer alike, at any speed of the network.
///
/// No command asks for a time that passes: a time to live is asked for only right after the command that has set it,
/// and is far from its end. Numbers with a fraction are halves, because TTLStore counts in 64 bits and redis-server in 80.
struct Commands {
    private(set) var text = ""
    private var numbers: Numbers
    /// The number of times to live so far, each of which is another one.
    private var lives = 0

    init(seed: UInt64, count: Int) {
        numbers = Numbers(state: seed)
        var left = count
        while left > 0 {
            let lines = group().prefix(left)
            left -= lines.count
            for line in lines { text += line + "\n" }
        }
    }

    /// SplitMix64, which gives the same numbers on each machine.
    private struct Numbers: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var mixed = (state ^ state >> 30) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
            return mixed ^ mixed >> 31
        }
    }

    // MARK: Words

    private mutating func one(of words: String...) -> String { words.randomElement(using: &numbers)! }

    private mutating func number(_ range: ClosedRange<Int>) -> Int { .random(in: range, using: &numbers) }

    /// A key. Keys of halves have no other numbers.
    private mutating func key() -> String { "key\(number(0...15))" }
    private mutating func keyOfHalves() -> String { "half\(number(0...3))" }
    private mutating func anyKey() -> String { number(0...3) == 0 ? keyOfHalves() : key() }
    private mutating func keys() -> String { (0...number(0...3)).map { _ in anyKey() }.joined(separator: " ") }

    private mutating func value() -> String {
        switch number(0...9) {
        case 0...3: "\(number(-1_000...1_000))"
        case 4:
            one(
                of: "9223372036854775807", "-9223372036854775808", "9223372036854775808", "007", "\" 7\"", "-0", "1e3")
        case 5: one(of: "\"\"", "\"a b\"", "\"\\x00\\xff\\n\"", "'it\\'s'", "\"\\\"\"", "äöü")
        default: String(repeating: one(of: "a", "bc", "Def"), count: number(1...40))
        }
    }

    private mutating func half() -> String { one(of: "", "-") + "\(number(0...500))" + one(of: "", ".5", ".0") }

    private mutating func life() -> Int {
        lives += 1
        return 10_000 + lives * 7_919 % 10_007 * 1_000
    }

    // MARK: Commands

    /// One command, or more that belong together.
    private mutating func group() -> [String] {
        switch number(0...19) {
        case 0...6: [strings()]
        case 7...9: [count()]
        case 10...12: lifetime()
        case 13...15: [several()]
        case 16...17: [part()]
        case 18: [other()]
        default: [wrong()]
        }
    }

    private mutating func strings() -> String {
        switch number(0...9) {
        case 0...2: "get \(anyKey())"
        case 3...4: "set \(key()) \(value()) \(one(of: "", "", "nx", "xx", "get", "xx get", "keepttl", "nx get"))"
        case 5: "setnx \(key()) \(value())"
        case 6: "getset \(key()) \(value())"
        case 7: "getdel \(anyKey())"
        case 8: "set \(keyOfHalves()) \(half())"
        default: one(of: "append", "APPEND", "Append") + " \(key()) \(value())"
        }
    }

    private mutating func count() -> String {
        switch number(0...4) {
        case 0: "incr \(key())"
        case 1: "decr \(key())"
        case 2: one(of: "incrby", "decrby") + " \(key()) \(value())"
        default: "incrbyfloat \(keyOfHalves()) \(half())"
        }
    }

    private mutating func lifetime() -> [String] {
        let (key, seconds) = (anyKey(), life())
        switch number(0...9) {
        case 0: return ["set \(key) \(half()) ex \(seconds)", "ttl \(key)"]
        case 1: return ["setex \(key) \(seconds) \(half())", "ttl \(key)"]
        case 2: return ["psetex \(key) \(seconds)000 \(half())", "ttl \(key)"]
        case 3: return ["getex \(key) " + one(of: "ex \(seconds)", "px \(seconds)000"), "ttl \(key)"]
        case 4: return ["persist \(key)", "ttl \(key)", "pttl \(key)"]
        case 5: return ["getex \(key) persist", "expiretime \(key)"]
        case 6: return [one(of: "expireat \(key) 4102444800", "pexpireat \(key) 4102444800123"), "pexpiretime \(key)"]
        case 7: return [one(of: "expire \(key) 0", "expireat \(key) 1", "pexpire \(key) -5", "set \(key) 1 ex 0")]
        default:
            let (name, zeros) = number(0...1) == 0 ? ("expire", "") : ("pexpire", "000")
            let condition = one(of: "", "", "nx", "xx", "gt", "lt", "nx xx", "gt lt")
            // A condition may leave an older time to live, whose seconds go on.
            let question = condition.isEmpty ? "ttl" : "exists"
            return ["\(name) \(key) \(seconds)\(zeros) \(condition)", "\(question) \(key)"]
        }
    }

    private mutating func several() -> String {
        let name = one(of: "mset", "mset", "msetnx", "mget", "mget", "del", "unlink", "exists", "exists")
        guard name.hasPrefix("mset") else { return "\(name) \(keys())" }
        return name + (0...number(0...3)).map { _ in " \(key()) \(value())" }.joined()
    }

    private mutating func part() -> String {
        switch number(0...3) {
        case 0: "strlen \(anyKey())"
        case 1: one(of: "getrange", "substr") + " \(anyKey()) \(number(-20...20)) \(number(-20...20))"
        case 2: "setrange \(key()) \(number(-1...50)) \(value())"
        default: "type \(anyKey())"
        }
    }

    private mutating func other() -> String {
        switch number(0...9) {
        case 0...3: "dbsize"
        case 4: one(of: "flushall", "flushdb")
        case 5: "ping " + value()
        case 6: "ping"
        case 7: "echo \(value())"
        case 8: "client setname name\(number(0...9))"
        default: "client getname"
        }
    }

    private mutating func wrong() -> String {
        switch number(0...7) {
        case 0: one(of: "get", "set key1", "mset key1", "mset key1 1 key2", "getrange key1 0", "strlen", "append key1")
        case 1: "incrby \(key()) \(one(of: "x", "1.5", "9223372036854775808"))"
        case 2: "set \(key()) \(value()) \(one(of: "ex", "px x", "nx xx", "keepttl ex 5", "ex 5 px 5", "nonsense"))"
        case 3: "expire \(key()) \(one(of: "x", "1.5", "9223372036854775807"))"
        case 4: "setrange \(key()) \(one(of: "x", "-1", "600000000")) a"
        case 5: "incrbyfloat \(keyOfHalves()) \(one(of: "x", "", "1,5"))"
        case 6: "getex \(key()) \(one(of: "ex", "ex 0", "persist ex 1", "nonsense"))"
        default: "nonsense \(value())"
        }
    }

    // MARK: Replies

    enum Store {
        case redis, ttlStore
    }

    /// Gives the commands to redis-cli on a host beside the store's, and prints its output.
    func printReplies(of store: Store) {
        withSimulation(seed: 1, traced: true) { simulation in
            let network = SimulatedNetwork(simulation)
            network.link.latency = .microseconds(10)
            let program =
                switch store {
                case .redis:
                    network.addProgram(
                        "server", at: "/usr/bin/redis-server",
                        arguments: ["--save", "", "--appendonly", "no", "--protected-mode", "no"])
                case .ttlStore:
                    network.addProgram("server", at: Programs.path(of: "TTLStore"), arguments: ["--bind", "0.0.0.0"])
                }
            simulation.advance(by: .seconds(1))
            let client = network.addProgram("client", at: "/usr/bin/redis-cli", arguments: ["-h", "server"])
            client.disk.install(Array(text.utf8), at: "/dev/stdin")
            simulation.advance(by: .seconds(100))
            for line in Programs.lines(of: "client", simulation) { print(line.text) }
            if client.isRunning || !program.isRunning { Programs.fail("redis-cli has not ended, or the store has") }
            for escape in simulation.escapes { Programs.fail(escape) }
        }
    }
}
