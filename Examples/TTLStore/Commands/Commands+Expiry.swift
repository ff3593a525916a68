import RunLoopKit

// Times to live.

/// The unit of a time.
enum TimeUnit: Int {
    case milliseconds = 1
    case seconds = 1000
}

extension Commands {
    static let expiry: [Command] = [
        Command("EXPIRE", 3..., .first, .writes) { $0.expire($1, .seconds, isDate: false, "expire", &$3) },
        Command("PEXPIRE", 3..., .first, .writes) { $0.expire($1, .milliseconds, isDate: false, "pexpire", &$3) },
        Command("EXPIREAT", 3..., .first, .writes) { $0.expire($1, .seconds, isDate: true, "expireat", &$3) },
        Command("PEXPIREAT", 3..., .first, .writes) { $0.expire($1, .milliseconds, isDate: true, "pexpireat", &$3) },
        Command("TTL", 2...2, .first) { $0.timeToLive($1, .seconds, &$3) },
        Command("PTTL", 2...2, .first) { $0.timeToLive($1, .milliseconds, &$3) },
        Command("EXPIRETIME", 2...2, .first) { $0.date($1, .seconds, &$3) },
        Command("PEXPIRETIME", 2...2, .first) { $0.date($1, .milliseconds, &$3) },
        Command("PERSIST", 2...2, .first, .writes) { $0.persist($1, &$3) },
    ]

    /// Returns a time given by a client, which must be above zero; `nil` if the reply describes the error.
    func expiry(_ request: Request, _ time: SetOptions.Time, _ command: String, _ reply: inout Reply) -> Expiry? {
        guard let count = request.integer(time.index) else {
            reply.error(Commands.notAnInteger)
            return nil
        }
        return expiry(count, time.unit, isDate: time.isDate, least: 1, command, &reply)
    }

    private func expiry(
        _ count: Int, _ unit: TimeUnit, isDate: Bool, least: Int, _ command: String, _ reply: inout Reply
    ) -> Expiry? {
        let (time, overflow) = count.multipliedReportingOverflow(by: unit.rawValue)
        guard !overflow, count >= least, let expiry = isDate ? clock.expiry(at: time) : clock.expiry(after: time) else {
            reply.error("ERR invalid expire time in '\(command)' command")
            return nil
        }
        return expiry
    }

    private func expire(
        _ request: Request, _ unit: TimeUnit, isDate: Bool, _ name: String, _ reply: inout Reply
    ) {
        guard let conditions = conditions(request, &reply) else { return }
        guard let count = request.integer(2) else { return reply.error(Commands.notAnInteger) }
        guard let expiry = expiry(count, unit, isDate: isDate, least: .min, name, &reply) else { return }
        let key = request.key(1)
        guard let date = store.date(of: key), conditions.allow(expiry.date, insteadOf: date) else {
            return reply.integer(0)
        }
        store.setExpiry(of: key, to: expiry)
        reply.integer(1)
    }

    /// Returns the options of EXPIRE; `nil` if the reply describes the error.
    private func conditions(_ request: Request, _ reply: inout Reply) -> Conditions? {
        var conditions: Conditions = []
        for index in 3..<max(3, request.count) {
            switch request.name(index) {
            case "NX": conditions.insert(.absent)
            case "XX": conditions.insert(.present)
            case "GT": conditions.insert(.later)
            case "LT": conditions.insert(.earlier)
            default:
                reply.error(Array("ERR Unsupported option ".utf8) + request.quoted(index))
                return nil
            }
        }
        if conditions.contains(.absent), conditions != .absent {
            reply.error("ERR NX and XX, GT or LT options at the same time are not compatible")
            return nil
        }
        if conditions.isSuperset(of: [.later, .earlier]) {
            reply.error("ERR GT and LT options at the same time are not compatible")
            return nil
        }
        return conditions
    }

    private struct Conditions: OptionSet {
        let rawValue: Int
        /// Only if there is no time to live.
        static let absent = Conditions(rawValue: 1)
        /// Only if there is a time to live.
        static let present = Conditions(rawValue: 2)
        static let later = Conditions(rawValue: 4)
        static let earlier = Conditions(rawValue: 8)

        /// Returns `true` if the conditions allow `date` instead of the old one. No time to live counts as later than
        /// every other.
        func allow(_ date: Int, insteadOf old: Int) -> Bool {
            (!contains(.absent) || old == Store.never) && (!contains(.present) || old != Store.never)
                && (!contains(.later) || date > old) && (!contains(.earlier) || date < old)
        }
    }

    private func timeToLive(_ request: Request, _ unit: TimeUnit, _ reply: inout Reply) {
        let key = request.key(1)
        guard let date = store.date(of: key) else { return reply.integer(-2) }
        guard date != Store.never, let left = store.timeLeft(of: key) else { return reply.integer(-1) }
        let size = Duration.milliseconds(unit.rawValue)
        // Rounded.
        reply.integer(Int(clamping: max(.zero, left + size / 2).attoseconds / size.attoseconds))
    }

    private func date(_ request: Request, _ unit: TimeUnit, _ reply: inout Reply) {
        guard let date = store.date(of: request.key(1)) else { return reply.integer(-2) }
        guard date != Store.never else { return reply.integer(-1) }
        let (seconds, rest) = date.quotientAndRemainder(dividingBy: unit.rawValue)
        reply.integer(seconds + (2 * rest >= unit.rawValue ? 1 : 0))
    }

    private func persist(_ request: Request, _ reply: inout Reply) {
        let key = request.key(1)
        let hasExpiry = store.date(of: key).map { $0 != Store.never } ?? false
        if hasExpiry { store.setExpiry(of: key, to: nil) }
        reply.integer(hasExpiry ? 1 : 0)
    }
}
