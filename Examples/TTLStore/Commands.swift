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

        /// The word as a whole number, as Redis reads one.
        func integer(_ index: Int) -> Int? {
            let word = self[index]
            guard let first = word.first, word.count <= 20 else { return nil }
            guard word.count == 1 || (first != UInt8(ascii: "0") && first != UInt8(ascii: "+")) else { return nil }
            return Int(text(index))
        }
    }

    func perform(_ request: Request, _ reply: inout Reply) -> Outcome {
        switch request.code(0) {
        case "GET": get(request, &reply)
        case "SET": set(request, &reply)
        case "PING": ping(request, &reply)
        case "ECHO": if has(2...2, request, &reply) { reply.bulk(request[1]) }
        case "DEL": count(request, &reply) { store.remove($0) }
        case "EXISTS": count(request, &reply) { store.contains($0) }
        case "INCR": increment(request, &reply)
        case "EXPIRE": expire(request, .seconds(1), &reply)
        case "PEXPIRE": expire(request, .milliseconds(1), &reply)
        case "TTL": timeToLive(request, 1_000_000_000, &reply)
        case "PTTL": timeToLive(request, 1_000_000, &reply)
        case "PERSIST": persist(request, &reply)
        case "DBSIZE": if has(1...1, request, &reply) { reply.integer(store.count) }
        case "FLUSHALL":
            store.removeAll()
            reply.ok()
        case "INFO": info(&reply)
        case "CONFIG": config(request, &reply)
        case "COMMAND": reply.array(count: 0)
        case "QUIT":
            reply.ok()
            return .quit
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
        var expiry: RunLoop.Instant?
        var condition: UInt64?
        var index = 3
        while index < request.count {
            let option = request.code(index)
            switch option {
            case "NX", "XX":
                guard condition == nil || condition == option else { return reply.error("ERR syntax error") }
                condition = option
            case "EX", "PX":
                guard index + 1 < request.count, expiry == nil else { return reply.error("ERR syntax error") }
                index += 1
                guard let time = request.integer(index) else { return reply.error(Commands.notAnInteger) }
                guard time > 0 else { return reply.error("ERR invalid expire time in 'set' command") }
                expiry = loop.now + (option == "EX" ? .seconds(time) : .milliseconds(time))
            default: return reply.error("ERR syntax error")
            }
            index += 1
        }
        if let condition, store.contains(key) != (condition == "XX") { return reply.null() }
        store.set(key, [UInt8](request[2]), expiry: expiry)
        reply.ok()
    }

    private func increment(_ request: Request, _ reply: inout Reply) {
        guard has(2...2, request, &reply) else { return }
        let key = request.key(1)
        let old = store.value(of: key) ?? [UInt8(ascii: "0")]
        guard let number = Int(String(decoding: old, as: UTF8.self)) else { return reply.error(Commands.notAnInteger) }
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

    private func expire(_ request: Request, _ unit: Duration, _ reply: inout Reply) {
        guard has(3...3, request, &reply) else { return }
        guard let time = request.integer(2) else { return reply.error(Commands.notAnInteger) }
        let key = request.key(1)
        guard store.contains(key) else { return reply.integer(0) }
        // 292 years are for ever; beyond them the product would leave its 64 bits.
        let bounded = min(max(time, -1), 9_000_000_000)
        if bounded > 0 { store.setExpiry(of: key, to: loop.now + unit * bounded) } else { _ = store.remove(key) }
        reply.integer(1)
    }

    private func timeToLive(_ request: Request, _ unit: Int64, _ reply: inout Reply) {
        guard has(2...2, request, &reply) else { return }
        let key = request.key(1)
        guard store.contains(key) else { return reply.integer(-2) }
        guard let expiry = store.expiry(of: key) else { return reply.integer(-1) }
        let left = max(0, expiry.nanoseconds - loop.now.nanoseconds)
        reply.integer(Int((left + unit / 2) / unit))
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

    private func info(_ reply: inout Reply) {
        var text = "# Server\r\n"
        for (name, value) in information() { text += "\(name):\(value)\r\n" }
        text +=
            "\r\n# Stats\r\nexpired_keys:\(store.expired)\r\nlatest_expiry_us:\(Int(store.latestExpiry / .microseconds(1)))\r\n\r\n# Keyspace\r\n"
        if store.count > 0 { text += "db0:keys=\(store.count),expires=\(store.countWithExpiry)\r\n" }
        reply.bulk(text.utf8)
    }

    private func config(_ request: Request, _ reply: inout Reply) {
        guard request.count >= 2, request.code(1) == "GET" else {
            return reply.error("ERR only CONFIG GET is supported")
        }
        guard has(3...Int.max, request, &reply) else { return }
        let settings = ["save": "", "appendonly": "no", "io-threads": "1"]
        let found = (2..<request.count).compactMap { index -> (String, String)? in
            let name = request.text(index).lowercased()
            return settings[name].map { (name, $0) }
        }
        reply.array(count: 2 * found.count)
        for (name, value) in found {
            reply.bulk(name.utf8)
            reply.bulk(value.utf8)
        }
    }

    private func unknown(_ request: Request, _ reply: inout Reply) {
        let name = request.text(0).prefix(128)
        let arguments = (1..<min(request.count, 8)).map { "'\(request.text($0).prefix(128))' " }.joined()
        reply.error("ERR unknown command '\(name)', with args beginning with: \(arguments)")
    }

    /// Whether the request has so many words; otherwise the reply says that it has not.
    private func has(_ counts: ClosedRange<Int>, _ request: Request, _ reply: inout Reply) -> Bool {
        guard !counts.contains(request.count) else { return true }
        reply.error("ERR wrong number of arguments for '\(request.text(0).lowercased())' command")
        return false
    }

    private static let notAnInteger = "ERR value is not an integer or out of range"
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
