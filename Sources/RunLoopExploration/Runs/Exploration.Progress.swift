extension Exploration {
    /// How far an exploration has come. A value and `Sendable`.
    public enum Progress: Sendable, Hashable, CustomStringConvertible {
        /// So many schedules have passed.
        case exploring(schedules: Int)
        /// A schedule has failed, and is being made shorter: so many departures are left, after so many runs.
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

/// Tells of progress, at most once a second.
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
