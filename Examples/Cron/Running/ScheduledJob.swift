import RunLoopKit

/// A job of the table: its dates, its run, and its counts. Used on the daemon's loop.
final class ScheduledJob {
    /// The counts of the job's dates and runs since the daemon's start.
    struct Counts {
        var runs = 0
        /// The number of runs that did not succeed.
        var failed = 0
        /// The number of dates that passed while the job still ran.
        var skipped = 0
        /// The number of dates that passed while the daemon was down or the clock was set forward.
        var missed = 0
    }

    private(set) var job: Job {
        didSet { dates = "\(job.dates)" }
    }
    /// The run that waits for its start or is under way.
    var run: Run? {
        didSet { arrange() }
    }
    /// The previous run.
    var lastRun: (run: Run, outcome: Run.Outcome)?
    var counts = Counts()
    /// `true` once the job has no more dates, because it was removed from the table or the daemon stops.
    private(set) var isRetired = false

    /// The text of the job's dates, for the ledger.
    private var dates: String
    private let loop: RunLoop
    private let dateHandler: (ScheduledJob, RunLoop.WallTime) -> Void
    // Set at once; the timer's block needs the job.
    private var timer: WallTimer!

    /// - Parameters:
    ///   - mark: the ledger's earlier mark of the job.
    ///   - dateHandler: called at the job's dates, with each of them.
    init(
        _ job: Job, after mark: Ledger.Mark?, on loop: RunLoop,
        _ dateHandler: @escaping (ScheduledJob, RunLoop.WallTime) -> Void
    ) {
        (self.job, self.loop, self.dateHandler) = (job, loop, dateHandler)
        dates = "\(job.dates)"
        let isSame = mark?.dates == dates
        begin(after: isSame ? mark?.date : start(after: mark?.date))
    }

    /// The mark that the ledger keeps for a new start.
    var mark: Ledger.Mark? { timer.lastDate.map { Ledger.Mark(dates: dates, date: $0) } }

    /// The next date; `nil` if there is none.
    var nextDate: RunLoop.WallTime? {
        isRetired ? nil : timer.lastDate.flatMap { job.dates.next(after: $0) }
    }

    // MARK: Changes

    /// Adopts the job's new entry in the table, or an entry that was added again.
    func change(to job: Job) {
        let hasOtherDates = isRetired || job.dates != self.job.dates
        (self.job, isRetired) = (job, false)
        if hasOtherDates {
            timer.invalidate()
            begin(after: start(after: timer.lastDate))
        } else {
            timer.missedDates = job.missed.ofTimer
            arrange()
        }
    }

    func retire() {
        isRetired = true
        timer.invalidate()
    }

    /// Returns the time from which new dates count: now, or the last date dealt with, if the clock was set back before
    /// it.
    private func start(after date: RunLoop.WallTime?) -> RunLoop.WallTime {
        max(date ?? .distantPast, loop.wallTime)
    }

    private func begin(after start: RunLoop.WallTime?) {
        timer = WallTimer(job.dates, after: start) { [unowned self] _ in dateCame() }
        timer.name = job.name
        timer.missedDates = job.missed.ofTimer
        // Added now, even if the job is to wait: this settles the time from which its dates count.
        loop.add(timer, forMode: .common)
        arrange()
    }

    /// Takes the timer out of the loop, or adds it again. The dates of a job that runs for each of them wait while it
    /// runs: a timer out of the loop makes up for them later.
    private func arrange() {
        guard !isRetired else { return }
        if run != nil && job.missed == .each {
            loop.remove(timer, forMode: .common)
        } else {
            loop.add(timer, forMode: .common)
        }
    }

    private func dateCame() {
        counts.missed += timer.missedFires
        RunLoop.sometimes("dates were missed", if: timer.missedFires > 0)
        dateHandler(self, timer.fireDate!)
    }
}
