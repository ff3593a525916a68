import RunLoopKit

/// A job: the contents of a line of the table.
struct Job: Hashable, Sendable {
    let name: String
    let dates: Dates
    let missed: MissedDates
    /// The longest time that a run may take; `nil` for no limit.
    let limit: TimeSpan?
    /// The command for `/bin/sh -c`.
    let command: String

    /// The treatment of dates that have passed while the daemon was down or the clock was set forward.
    enum MissedDates: String, CaseIterable, Sendable {
        /// One run for all missed dates.
        case once
        /// A run for each missed date, and for each date that comes while the job runs.
        case each
        /// No run, unless the last missed date is no older than a minute.
        case skip

        var ofTimer: WallTimer.MissedDates {
            switch self {
            case .once: .runOnce
            case .each: .runEach
            case .skip: .skip
            }
        }
    }
}
