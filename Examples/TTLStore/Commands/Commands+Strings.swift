// Values, which are any bytes.

extension Commands {
    static let strings: [Command] = [
        Command("GET", 2...2, .first) { $0.get($1, &$3) },
        Command("SET", 3..., .first, [.writes, .grows]) { $0.set($1, &$3) },
        Command("SETNX", 3...3, .first, [.writes, .grows]) { $0.setIfAbsent($1, &$3) },
        Command("SETEX", 4...4, .first, [.writes, .grows]) { $0.setExpiring($1, .seconds, &$3) },
        Command("PSETEX", 4...4, .first, [.writes, .grows]) { $0.setExpiring($1, .milliseconds, &$3) },
        Command("GETSET", 3...3, .first, [.writes, .grows]) { $0.getAndSet($1, &$3) },
        Command("GETDEL", 2...2, .first, .writes) { $0.getAndDelete($1, &$3) },
        Command("GETEX", 2..., .first, .writes) { $0.getAndExpire($1, &$3) },
        Command("MGET", 2..., .each) { $0.getMany($1, &$3) },
        Command("MSET", 3..., .everySecond, [.writes, .grows]) { $0.setMany($1, &$3) },
        Command("MSETNX", 3..., .everySecond, [.writes, .grows]) { $0.setManyIfAbsent($1, &$3) },
        Command("APPEND", 3...3, .first, [.writes, .grows]) { $0.append($1, &$3) },
        Command("STRLEN", 2...2, .first) { $3.integer($0.store.value(of: $1.key(1))?.count ?? 0) },
        Command("GETRANGE", 4...4, .first) { $0.getRange($1, &$3) },
        Command("SUBSTR", 4...4, .first) { $0.getRange($1, &$3) },
        Command("SETRANGE", 4...4, .first, [.writes, .grows]) { $0.setRange($1, &$3) },
    ]

    private func get(_ request: Request, _ reply: inout Reply) {
        guard let value = store.value(of: request.key(1)) else { return reply.null() }
        reply.bulk(value)
    }

    private func set(_ request: Request, _ reply: inout Reply) {
        let key = request.key(1)
        guard request.count > 3 else {
            store.set(key, request.value(2))
            return reply.ok()
        }
        guard let options = SetOptions(request, from: 3, isGet: false) else { return reply.error(Commands.syntaxError) }
        var expiry: Expiry?
        if let time = options.time {
            expiry = self.expiry(request, time, "set", &reply)
            guard expiry != nil else { return }
        }
        let old = options.gets || options.condition != nil ? store.value(of: key) : nil
        if options.gets { if let old { reply.bulk(old) } else { reply.null() } }
        if let condition = options.condition, (old != nil) != (condition == .present) {
            if !options.gets { reply.null() }
            return
        }
        if options.keepsTime {
            let value = request.value(2)
            store.changeValue(of: key) { $0 = value }
        } else {
            store.set(key, request.value(2), expiry: expiry)
        }
        if !options.gets { reply.ok() }
    }

    private func setIfAbsent(_ request: Request, _ reply: inout Reply) {
        let key = request.key(1)
        let isAbsent = !store.contains(key)
        if isAbsent { store.set(key, request.value(2)) }
        reply.integer(isAbsent ? 1 : 0)
    }

    private func setExpiring(_ request: Request, _ unit: TimeUnit, _ reply: inout Reply) {
        let time = SetOptions.Time(index: 2, unit: unit, isDate: false)
        guard let expiry = expiry(request, time, unit == .seconds ? "setex" : "psetex", &reply) else { return }
        store.set(request.key(1), request.value(3), expiry: expiry)
        reply.ok()
    }

    private func getAndSet(_ request: Request, _ reply: inout Reply) {
        get(request, &reply)
        store.set(request.key(1), request.value(2))
    }

    private func getAndDelete(_ request: Request, _ reply: inout Reply) {
        get(request, &reply)
        _ = store.remove(request.key(1))
    }

    private func getAndExpire(_ request: Request, _ reply: inout Reply) {
        guard let options = SetOptions(request, from: 2, isGet: true) else { return reply.error(Commands.syntaxError) }
        let key = request.key(1)
        guard let value = store.value(of: key) else { return reply.null() }
        if let time = options.time {
            guard let expiry = expiry(request, time, "getex", &reply) else { return }
            store.setExpiry(of: key, to: expiry)
        } else if options.persists, store.date(of: key) != Store.never {
            store.setExpiry(of: key, to: nil)
        }
        reply.bulk(value)
    }

    private func getMany(_ request: Request, _ reply: inout Reply) {
        reply.array(count: request.count - 1)
        for index in 1..<request.count where !reply.isFull {
            if let value = store.value(of: request.key(index)) { reply.bulk(value) } else { reply.null() }
        }
    }

    private func setMany(_ request: Request, _ reply: inout Reply) {
        guard request.count % 2 == 1 else { return refuseCount(request, &reply) }
        for index in stride(from: 1, to: request.count, by: 2) {
            store.set(request.key(index), request.value(index + 1))
        }
        reply.ok()
    }

    private func setManyIfAbsent(_ request: Request, _ reply: inout Reply) {
        guard request.count % 2 == 1 else { return refuseCount(request, &reply) }
        for index in stride(from: 1, to: request.count, by: 2) where store.contains(request.key(index)) {
            return reply.integer(0)
        }
        for index in stride(from: 1, to: request.count, by: 2) {
            store.set(request.key(index), request.value(index + 1))
        }
        reply.integer(1)
    }

    private func append(_ request: Request, _ reply: inout Reply) {
        let key = request.key(1)
        let piece = request[2]
        guard hasRoom((store.value(of: key)?.count ?? 0) + piece.count, &reply) else { return }
        reply.integer(
            store.changeValue(of: key) { value in
                value.append(contentsOf: piece)
                return value.count
            })
    }

    /// Performs GETRANGE. Negative ends count from the end of the value.
    private func getRange(_ request: Request, _ reply: inout Reply) {
        guard var first = request.integer(2), var last = request.integer(3) else {
            return reply.error(Commands.notAnInteger)
        }
        let value = store.value(of: request.key(1)) ?? []
        let isReversed = first < 0 && last < 0 && first > last
        // A position before the beginning stands for the beginning.
        if first < 0 { first = max(0, first + value.count) }
        if last < 0 { last = max(0, last + value.count) }
        last = min(last, value.count - 1)
        guard first <= last, !isReversed else { return reply.bulk([UInt8]()) }
        reply.bulk(value[first...last])
    }

    private func setRange(_ request: Request, _ reply: inout Reply) {
        guard let offset = request.integer(2) else { return reply.error(Commands.notAnInteger) }
        guard offset >= 0 else { return reply.error("ERR offset is out of range") }
        let key = request.key(1)
        let piece = request[3]
        guard !piece.isEmpty else { return reply.integer(store.value(of: key)?.count ?? 0) }
        let (end, overflow) = offset.addingReportingOverflow(piece.count)
        guard hasRoom(overflow ? .max : end, &reply) else { return }
        reply.integer(
            store.changeValue(of: key) { value in
                if value.count < end { value += [UInt8](repeating: 0, count: end - value.count) }
                value.replaceSubrange(offset..<end, with: piece)
                return value.count
            })
    }

    private func hasRoom(_ count: Int, _ reply: inout Reply) -> Bool {
        guard count > settings.maximumValue else { return true }
        reply.error("ERR string exceeds maximum allowed size (proto-max-bulk-len)")
        return false
    }
}

/// The options of SET and GETEX.
struct SetOptions {
    enum Condition {
        case absent, present
    }

    /// The position of a time, and its meaning.
    struct Time: Equatable {
        let index: Int
        let unit: TimeUnit
        let isDate: Bool
    }

    private(set) var condition: Condition?
    private(set) var gets = false
    private(set) var keepsTime = false
    private(set) var persists = false
    private(set) var time: Time?

    /// Creates the options; `nil` if they are not understood, or exclude each other.
    init?(_ request: Request, from start: Int, isGet: Bool) {
        var index = start
        while index < request.count {
            var kind: (TimeUnit, isDate: Bool)?
            switch request.name(index) {
            case "NX" where !isGet && condition != .present: condition = .absent
            case "XX" where !isGet && condition != .absent: condition = .present
            case "GET" where !isGet: gets = true
            case "KEEPTTL" where !isGet && time == nil: keepsTime = true
            case "PERSIST" where isGet && time == nil: persists = true
            case "EX": kind = (.seconds, false)
            case "PX": kind = (.milliseconds, false)
            case "EXAT": kind = (.seconds, true)
            case "PXAT": kind = (.milliseconds, true)
            default: return nil
            }
            if let kind {
                index += 1
                let isOther = time.map { ($0.unit, $0.isDate) != kind } ?? false
                guard index < request.count, !isOther, !keepsTime, !persists else { return nil }
                time = Time(index: index, unit: kind.0, isDate: kind.isDate)
            }
            index += 1
        }
    }
}
