import Glibc
import RunLoopKit

/// Carries out requests.
struct Commands {
    let store: Store
    let loop: RunLoop
    /// The server's part of INFO.
    let information: () -> [(String, String)]

    enum Outcome {
        case goOn, quit
    }

    /// The words of a request, where they came in.
    struct Request {
        let bytes: UnsafeBufferPointer<UInt8>
        let words: [Range<Int>]

        var count: Int { words.count }

        subscript(index: Int) -> UnsafeBufferPointer<UInt8> { UnsafeBufferPointer(rebasing: bytes[words[index]]) }

        func key(_ index: Int) -> Key { Key(self[index]) }
        func text(_ index: Int) -> String { String(decoding: self[index], as: UTF8.self) }

        /// The word as eight letters, in upper case: commands and options are told apart by one comparison.
        func code(_ index: Int) -> UInt64 {
            let word = self[index]
            guard word.count <= 8 else { return 0 }
            return word.reduce(0) { $0 << 8 | UInt64($1 &- 0x61 < 26 ? $1 & ~0x20 : $1) }
        }

        /// The word as an error repeats it: not too much of it, and as a C string.
        func quoted(_ index: Int, _ most: Int = 128) -> UnsafeBufferPointer<UInt8>.SubSequence {
            self[index].prefix(most).prefix { $0 != 0 }
        }

        func integer(_ index: Int) -> Int? { Int(wholeNumber: self[index]) }
    }

    /// Carries out all requests that are complete, until so many bytes of replies have come together.
    ///
    /// - Returns: how many bytes were used, for how many requests, and whether the client has had its last reply.
    func perform(
        all bytes: UnsafeBufferPointer<UInt8>, _ parser: inout RequestParser, _ reply: inout Reply, limit: Int = .max
    ) -> (used: Int, requests: Int, isLast: Bool) {
        var position = 0
        var requests = 0
        while true {
            switch parser.parse(bytes, from: position) {
            case .incomplete: return (position, requests, false)
            case .malformed(let text):
                reply.error("ERR \(text)")
                return (bytes.count, requests, true)
            case .request(let end):
                position = end
                guard !parser.arguments.isEmpty else { continue }
                requests += 1
                guard perform(parser, bytes, &reply) == .goOn, reply.bytes.count <= limit else {
                    return (bytes.count, requests, true)
                }
            }
        }
    }

    /// Carries out the request that the parser has found.
    private func perform(
        _ parser: RequestParser, _ bytes: UnsafeBufferPointer<UInt8>, _ reply: inout Reply
    ) -> Outcome {
        guard let unquoted = parser.unquoted else {
            return perform(Request(bytes: bytes, words: parser.arguments), &reply)
        }
        return unquoted.withUnsafeBufferPointer {
            perform(Request(bytes: $0, words: parser.arguments), &reply)
        }
    }

    private func perform(_ request: Request, _ reply: inout Reply) -> Outcome {
        switch request.code(0) {
        case "GET": get(request, &reply)
        case "SET": set(request, &reply)
        case "PING": ping(request, &reply)
        case "ECHO": if has(2...2, request, &reply) { reply.bulk(request[1]) }
        case "DEL": count(request, &reply) { store.remove($0) }
        case "EXISTS": count(request, &reply) { store.contains($0) }
        case "INCR": increment(request, &reply)
        case "EXPIRE": expire(request, 1000, &reply)
        case "PEXPIRE": expire(request, 1, &reply)
        case "TTL": timeToLive(request, 1_000_000_000, &reply)
        case "PTTL": timeToLive(request, 1_000_000, &reply)
        case "PERSIST": persist(request, &reply)
        case "DBSIZE": if has(1...1, request, &reply) { reply.integer(store.count) }
        case "FLUSHALL": removeAll(request, &reply)
        case "SELECT": select(request, &reply)
        case "INFO": info(request, &reply)
        case "CONFIG": config(request, &reply)
        case "COMMAND": reply.array(count: 0)
        case "QUIT":
            reply.ok()
            return .quit
        // A browser that was lured into sending a form here must not get further than this.
        case "POST", "HOST:": return .quit
        default: unknown(request, &reply)
        }
        return .goOn
    }

    // MARK: Values

    private func get(_ request: Request, _ reply: inout Reply) {
        guard has(2...2, request, &reply) else { return }
        guard let value = store.value(of: request.key(1)) else { return reply.null() }
        reply.bulk(value)
    }

    private func set(_ request: Request, _ reply: inout Reply) {
        guard has(3...Int.max, request, &reply) else { return }
        let key = request.key(1)
        guard request.count > 3 else {
            store.set(key, [UInt8](request[2]), expiry: nil)
            return reply.ok()
        }
        var time: (index: Int, code: UInt64)?
        var condition: UInt64?
        var index = 3
        while index < request.count {
            let option = request.code(index)
            switch option {
            case "NX", "XX":
                guard condition == nil || condition == option else { return reply.error(Commands.syntaxError) }
                condition = option
            case "EX", "PX":
                index += 1
                guard index < request.count, time == nil || time?.code == option else {
                    return reply.error(Commands.syntaxError)
                }
                time = (index, option)
            default: return reply.error(Commands.syntaxError)
            }
            index += 1
        }
        var expiry: RunLoop.Instant?
        if let time {
            guard let left = milliseconds(request, time.index, time.code == "EX" ? 1000 : 1, "set", 1, &reply) else {
                return
            }
            expiry = loop.now + left
        }
        if let condition, store.contains(key) != (condition == "XX") { return reply.null() }
        store.set(key, [UInt8](request[2]), expiry: expiry)
        reply.ok()
    }

    private func increment(_ request: Request, _ reply: inout Reply) {
        guard has(2...2, request, &reply) else { return }
        let key = request.key(1)
        let old = store.value(of: key) ?? [UInt8(ascii: "0")]
        guard let number = old.withUnsafeBufferPointer({ Int(wholeNumber: $0) }) else {
            return reply.error(Commands.notAnInteger)
        }
        let (sum, overflow) = number.addingReportingOverflow(1)
        guard !overflow else { return reply.error("ERR increment or decrement would overflow") }
        store.replaceValue(of: key, with: Array(String(sum).utf8))
        reply.integer(sum)
    }

    private func count(_ request: Request, _ reply: inout Reply, where matches: (Key) -> Bool) {
        guard has(2...Int.max, request, &reply) else { return }
        reply.integer((1..<request.count).count { matches(request.key($0)) })
    }

    // MARK: Times to live

    private func expire(_ request: Request, _ unit: Int, _ reply: inout Reply) {
        guard has(3...Int.max, request, &reply) else { return }
        let name = unit == 1 ? "pexpire" : "expire"
        guard let left = milliseconds(request, 2, unit, name, .min, &reply) else { return }
        guard request.count == 3 else { return reply.error("ERR Unsupported option \(request.text(3))") }
        let key = request.key(1)
        guard store.contains(key) else { return reply.integer(0) }
        if left > .zero { store.setExpiry(of: key, to: loop.now + left) } else { _ = store.remove(key) }
        reply.integer(1)
    }

    /// A time to live that a client gives, in units of so many milliseconds; `nil` if the reply says what is wrong with
    /// it. What is more than the loop's clock can tell, 292 years, is that much.
    private func milliseconds(
        _ request: Request, _ index: Int, _ unit: Int, _ command: String, _ least: Int, _ reply: inout Reply
    ) -> Duration? {
        guard let count = request.integer(index) else {
            reply.error(Commands.notAnInteger)
            return nil
        }
        let (time, overflow) = count.multipliedReportingOverflow(by: unit)
        // Redis keeps the date, in milliseconds since 1970.
        guard !overflow, count >= least, time <= Int.max - 1000 * Glibc.time(nil) else {
            reply.error("ERR invalid expire time in '\(command)' command")
            return nil
        }
        return .milliseconds(time)
    }

    private func timeToLive(_ request: Request, _ unit: Int64, _ reply: inout Reply) {
        guard has(2...2, request, &reply) else { return }
        let key = request.key(1)
        guard store.contains(key) else { return reply.integer(-2) }
        guard let expiry = store.expiry(of: key) else { return reply.integer(-1) }
        let left = max(0, expiry.nanoseconds - loop.now.nanoseconds)
        // Rounded, without leaving 64 bits when it is for ever.
        reply.integer(Int(left / unit + (left % unit >= unit / 2 ? 1 : 0)))
    }

    private func persist(_ request: Request, _ reply: inout Reply) {
        guard has(2...2, request, &reply) else { return }
        let key = request.key(1)
        let hadExpiry = store.expiry(of: key) != nil
        if hadExpiry { store.setExpiry(of: key, to: nil) }
        reply.integer(hadExpiry ? 1 : 0)
    }

    // MARK: The server

    private func ping(_ request: Request, _ reply: inout Reply) {
        guard has(1...2, request, &reply) else { return }
        if request.count == 2 { reply.bulk(request[1]) } else { reply.pong() }
    }

    private func removeAll(_ request: Request, _ reply: inout Reply) {
        guard request.count == 1 || (request.count == 2 && ["ASYNC", "SYNC"].contains(request.text(1).uppercased()))
        else { return reply.error(Commands.syntaxError) }
        store.removeAll()
        reply.ok()
    }

    /// There is one database.
    private func select(_ request: Request, _ reply: inout Reply) {
        guard has(2...2, request, &reply) else { return }
        guard let number = request.integer(1) else { return reply.error(Commands.notAnInteger) }
        if number == 0 { reply.ok() } else { reply.error("ERR DB index is out of range") }
    }

    /// All sections, or those that are named.
    private func info(_ request: Request, _ reply: inout Reply) {
        let sections: [(name: String, lines: [(String, String)])] = [
            ("Server", information()),
            (
                "Stats",
                [
                    ("expired_keys", "\(store.expired)"),
                    ("latest_expiry_us", "\(Int(store.latestExpiry / .microseconds(1)))"),
                ]
            ),
            (
                "Keyspace",
                store.count == 0 ? [] : [("db0", "keys=\(store.count),expires=\(store.countWithExpiry)")]
            ),
        ]
        let names = Set((1..<request.count).map { request.text($0).lowercased() })
        let isWhole = names.isEmpty || !names.isDisjoint(with: ["all", "default", "everything"])
        let text = sections.filter { isWhole || names.contains($0.name.lowercased()) }
            .map { section in "# \(section.name)\r\n" + section.lines.map { "\($0):\($1)\r\n" }.joined() }
            .joined(separator: "\r\n")
        reply.bulk(text.utf8)
    }

    private func config(_ request: Request, _ reply: inout Reply) {
        guard has(2...Int.max, request, &reply) else { return }
        guard request.code(1) == "GET" else {
            return reply.error(Array("ERR unknown subcommand '".utf8) + request.quoted(1) + "'. Try CONFIG HELP.".utf8)
        }
        guard request.count > 2 else { return reply.error("ERR wrong number of arguments for 'config|get' command") }
        var settings = ["save": "", "appendonly": "no", "io-threads": "1"]
        let found = (2..<request.count).compactMap { index -> (String, String)? in
            let name = request.text(index)
            return settings.removeValue(forKey: name.lowercased()).map { (name, $0) }
        }
        reply.array(count: 2 * found.count)
        for (name, value) in found {
            reply.bulk(name.utf8)
            reply.bulk(value.utf8)
        }
    }

    private func unknown(_ request: Request, _ reply: inout Reply) {
        var arguments: [UInt8] = []
        for index in 1..<max(1, request.count) where arguments.count < 128 {
            arguments += [UInt8(ascii: "'")] + request.quoted(index, 128 - arguments.count) + "' ".utf8
        }
        reply.error(
            Array("ERR unknown command '".utf8) + request.quoted(0) + "', with args beginning with: ".utf8 + arguments)
    }

    /// Whether the request has so many words; otherwise the reply says that it has not.
    private func has(_ counts: ClosedRange<Int>, _ request: Request, _ reply: inout Reply) -> Bool {
        guard !counts.contains(request.count) else { return true }
        reply.error("ERR wrong number of arguments for '\(request.text(0).lowercased())' command")
        return false
    }

    private static let notAnInteger = "ERR value is not an integer or out of range"
    private static let syntaxError = "ERR syntax error"
}

extension Int {
    /// A whole number as Redis reads one: digits, with a minus or without, and nothing that could be left out.
    init?(wholeNumber word: UnsafeBufferPointer<UInt8>) {
        let digits = word.first == UInt8(ascii: "-") ? word.dropFirst() : word[...]
        guard let first = digits.first, word.count <= 20, digits.allSatisfy({ (0x30...0x39).contains($0) }) else {
            return nil
        }
        guard first != UInt8(ascii: "0") || word.count == 1 else { return nil }
        self.init(String(decoding: word, as: UTF8.self))
    }
}

/// A command's name in the form of `Request.code`, so that a `switch` reads like one over names.
private func ~= (name: StaticString, code: UInt64) -> Bool {
    code == name.code
}

private func == (code: UInt64?, name: StaticString) -> Bool {
    code == name.code
}

extension StaticString {
    @inline(__always)
    fileprivate var code: UInt64 {
        UnsafeBufferPointer(start: utf8Start, count: utf8CodeUnitCount).reduce(0) { $0 << 8 | UInt64($1) }
    }
}
