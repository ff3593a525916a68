extension Exploration {
    /// The progress of an exploration. A `Sendable` value.
    public enum Progress: Sendable, Hashable, CustomStringConvertible {
        /// Exploring; the number of schedules that have passed.
        case exploring(schedules: Int)
        /// Making a failed schedule shorter; the number of departures left, and of runs so far.
        case shrinking(departures: Int, runs: Int)

        /// For example `1,000 schedules have passed`.
        public var description: String {
            switch self {
            case .exploring(let schedules): "\(schedules) schedules have passed"
            case .shrinking(let departures, let runs):
                "a schedule has failed; \(departures) of its departures are left after \(runs) runs"
            }
        }
    }
}

/// Reports progress, at most once a second.
struct ProgressReports {
    let report: (@Sendable (Exploration.Progress) -> Void)?
    private(set) var last = ContinuousClock.now

    mutating func tell(_ progress: @autoclosure () -> Exploration.Progress) {
        guard let report else { return }
        let now = ContinuousClock.now
        guard now - last >= .seconds(1) else { return }
        last = now
        report(progress())
    }
}
