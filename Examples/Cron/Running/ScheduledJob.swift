import RunLoopKit

/// A job of the table: its dates, its run, and what is counted of it. On the daemon's loop.
final class ScheduledJob {
    /// What has become of its dates and runs since the daemon's start.
    struct Counts {
        var runs = 0
        /// Runs that were no success.
        var failed = 0
        /// Dates that came while it still ran.
        var skipped = 0
        /// Dates that have passed while nobody looked.
        var missed = 0
    }

    private(set) var job: Job {
        didSet { dates = "\(job.dates)" }
    }
    /// What waits for its start, or runs.
    var run: Run? {
        didSet { arrange() }
    }
    /// The run before.
    var lastRun: (run: Run, outcome: Run.Outcome)?
    var counts = Counts()
    /// Whether it has no more dates: it is in the table no more, or the daemon stops.
    private(set) var isRetired = false

    /// What the ledger is told of its dates.
    private var dates: String
    private let loop: RunLoop
    private let dateHandler: (ScheduledJob, RunLoop.WallTime) -> Void
    // Set at once; its block needs the job.
    private var timer: WallTimer!

    /// - Parameters:
    ///   - mark: what is known of it from before.
    ///   - dateHandler: called at its dates, with each.
    init(
        _ job: Job, after mark: Ledger.Mark?, on loop: RunLoop,
        _ dateHandler: @escaping (ScheduledJob, RunLoop.WallTime) -> Void
    ) {
        (self.job, self.loop, self.dateHandler) = (job, loop, dateHandler)
        dates = "\(job.dates)"
        let isSame = mark?.dates == dates
        begin(after: isSame ? mark?.date : start(after: mark?.date))
    }

    /// What is to be known of it after a new start.
    var mark: Ledger.Mark? { timer.lastDate.map { Ledger.Mark(dates: dates, date: $0) } }

    /// `nil` if it has none.
    var nextDate: RunLoop.WallTime? {
        isRetired ? nil : timer.lastDate.flatMap { job.dates.next(after: $0) }
    }

    // MARK: Changes

    /// The table has it with something else, or has it again.
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

    /// When dates that are new begin to count: now, but if the clock was set back, not before what was dealt with.
    private func start(after date: RunLoop.WallTime?) -> RunLoop.WallTime {
        max(date ?? .distantPast, loop.wallTime)
    }

    private func begin(after start: RunLoop.WallTime?) {
        timer = WallTimer(job.dates, after: start) { [unowned self] _ in dateCame() }
        timer.name = job.name
        timer.missedDates = job.missed.ofTimer
        // Now, even if it is to wait: this is when it learns from when its dates count.
        loop.add(timer, forMode: .common)
        arrange()
    }

    /// A job that runs for each of its dates lets them wait as long as it runs: a timer that is out of the loop makes up for
    /// them later.
    private func arrange() {
        guard !isRetired else { return }
        if run != nil && job.missed == .each {
            loop.remove(timer, fromMode: .common)
        } else {
            loop.add(timer, forMode: .common)
        }
    }

    private func dateCame() {
        counts.missed += timer.missedFires
        dateHandler(self, timer.fireDate!)
    }
}
