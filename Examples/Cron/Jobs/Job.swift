import RunLoopKit

/// A job: what a line of the table says.
struct Job: Hashable, Sendable {
    let name: String
    let dates: Dates
    let missed: MissedDates
    /// How long a run may take; `nil` for ever.
    let limit: TimeSpan?
    /// For `/bin/sh -c`.
    let command: String

    /// What becomes of dates that have passed while the daemon was down or the clock was set forward.
    enum MissedDates: String, CaseIterable, Sendable {
        /// One run for all of them.
        case once
        /// A run for each of them, and for each that comes while the job runs.
        case each
        /// None, unless the last of them is no older than a minute.
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
