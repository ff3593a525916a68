import RunLoopKit

/// A client's knowledge of a key that it alone sets: the numbers, the times to live, and the acknowledgements.
struct KnownKey {
    private struct Setting {
        let number: Int
        /// The time to live; `nil` for none.
        let life: Duration?
        let sent: RunLoop.Instant
        var acknowledged: RunLoop.Instant?

        func mayBeThere(_ asked: RunLoop.Instant, _ allowance: Duration) -> Bool {
            // The time of arrival is unknown without an acknowledgement.
            guard let life, let acknowledged else { return true }
            return asked <= acknowledged + life + allowance
        }

        func mayBeGone(_ answered: RunLoop.Instant, _ allowance: Duration) -> Bool {
            life.map { answered >= sent + $0 - allowance } ?? false
        }
    }

    // Requests that arrive do so in the order in which they were sent.
    private var settings: [Setting] = []

    mutating func send(_ number: Int, life: Duration?, at instant: RunLoop.Instant) {
        settings.append(Setting(number: number, life: life, sent: instant))
    }

    mutating func acknowledge(_ number: Int, at instant: RunLoop.Instant) {
        if let index = settings.lastIndex(where: { $0.number == number }) { settings[index].acknowledged = instant }
    }

    /// Notes that a number was not set.
    mutating func refuse(_ number: Int) {
        settings.removeAll { $0.number == number }
    }

    /// Returns `true` if a store that loses and forgets nothing may give this answer.
    ///
    /// - Parameters:
    ///   - asked: the time when the question was sent; all earlier settings are known.
    ///   - answered: the time when the answer came.
    ///   - allowance: the amount by which the end of a life may be early or late.
    ///   - isSafe: returns `true` if a setting acknowledged at an instant has to be there.
    func mayBe(
        _ value: Int?, asked: RunLoop.Instant, answered: RunLoop.Instant, allowance: Duration,
        isSafe: (RunLoop.Instant) -> Bool
    ) -> Bool {
        let safe = settings.lastIndex { $0.acknowledged.map(isSafe) ?? false }
        if safe == nil, value == nil { return true }
        return settings[(safe ?? 0)...].contains { setting in
            if let value { return setting.number == value && setting.mayBeThere(asked, allowance) }
            return setting.mayBeGone(answered, allowance)
        }
    }
}

extension KnownKey: CustomStringConvertible {
    /// For example `1 for ever, sent at 0.5 and acknowledged at 0.6`.
    var description: String {
        settings.suffix(3).map { setting in
            let end = setting.acknowledged.map { "acknowledged at \($0)" } ?? "not acknowledged"
            return "\(setting.number) for \(setting.life.map { "\($0)" } ?? "ever"), sent at \(setting.sent) and \(end)"
        }.joined(separator: "; ")
    }
}
