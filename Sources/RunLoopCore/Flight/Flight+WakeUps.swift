extension Flight {
    /// The wake-ups of a loop with one reason.
    public struct WakeUps: Sendable, Hashable {
        /// The reason.
        public let reason: ReasonToWake
        /// The number of wake-ups.
        public let count: Int
        /// The number of wake-ups after which nothing was called before the loop slept again.
        public let idle: Int
    }

    /// The reasons to wake up, the most frequent one first. O(events).
    public var wakeUps: [WakeUps] {
        var sums: [ReasonToWake: (count: Int, idle: Int)] = [:]
        var last: ReasonToWake?
        for entry in entries {
            switch entry.event {
            case .slept(_, let reason):
                if let last { sums[last]!.idle += 1 }
                sums[reason, default: (0, 0)].count += 1
                last = reason
            case .callBegan: last = nil
            default: continue
            }
        }
        return sums.map { WakeUps(reason: $0, count: $1.count, idle: $1.idle) }
            .ordered { ($1.count, "\($0.reason)") < ($0.count, "\($1.reason)") }
    }

    /// The time that the loop has slept.
    public var sleep: Duration {
        entries.reduce(.zero) { sum, entry in
            if case .slept(let duration, _) = entry.event { sum + duration } else { sum }
        }
    }

    /// The number of times that the loop woke up and called nothing before it slept again; ``wakeUps`` has the reasons.
    public var idleWakeUps: Int { wakeUps.reduce(0) { $0 + $1.idle } }
}
