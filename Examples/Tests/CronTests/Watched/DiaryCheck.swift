import RunLoopKit

@testable import Cron

/// Checks a diary: each date has its run or a reason for none, and there is no unjustified run.
final class DiaryCheck {
    private(set) var failures: [String] = []
    private let diary: Diary
    private let periods: [Period]
    /// The runs of a job, in order.
    private var runs: [String: [Run]] = [:]
    /// The ends of everything that a run may have waited for: a run in its place, a full disk, a time without a daemon.
    private var releases: [RunLoop.Instant] = []

    /// A period in which a job was in the table with the same dates.
    private struct Period {
        let job: Job
        let from: RunLoop.Instant
        var to: RunLoop.Instant
    }

    private struct Run {
        let date: RunLoop.WallTime
        let start: RunLoop.Instant
        /// The latest possible end.
        let end: RunLoop.Instant
    }

    /// The time that an immediate start may take: the disk may be slow.
    private static let moment = Duration.seconds(10)
    /// The time that reading a new table may take.
    private static let reading = Duration.seconds(4)

    init(_ diary: Diary) {
        self.diary = diary
        periods = Self.periods(diary.tables)
        for run in diary.runs { check(run) }
        releases = diary.lives.map(\.time.lowerBound) + diary.fullDisks.map(\.upperBound)
        releases += runs.values.joined().map(\.end)
        releases.sort()
        for runs in runs.values { checkOverlaps(runs) }
        for period in periods { check(period) }
    }

    private func fail(_ text: String) {
        failures.append(text)
    }

    private static func periods(_ tables: [(from: RunLoop.Instant, table: JobTable)]) -> [Period] {
        var periods: [Period] = []
        for (from, table) in tables {
            for job in table.jobs {
                let known = periods.lastIndex {
                    $0.to == .distantFuture && $0.job.name == job.name && $0.job.dates == job.dates
                }
                if known == nil { periods.append(Period(job: job, from: from, to: .distantFuture)) }
            }
            for index in periods.indices where periods[index].to == .distantFuture {
                let job = periods[index].job
                let isThere = table.jobs.contains { $0.name == job.name && $0.dates == job.dates }
                if !isThere { periods[index].to = from }
            }
        }
        return periods
    }

    // MARK: Runs

    private func check(_ run: Diary.Run) {
        let what = "\(run.name) for \(run.date), begun at \(run.start),"
        let due = diary.instant(of: run.date)
        if due > run.start { fail("\(what) is early") }
        let belongs = periods.contains { period in
            period.job.name == run.name && diary.time(at: period.from) <= run.date && due <= period.to + Self.reading
                && period.job.dates.next(after: run.date - .nanoseconds(1)) == run.date
        }
        if !belongs { fail("\(what) has no such date") }
        let isInTable = periods.contains {
            $0.job.name == run.name && $0.from <= run.start && run.start <= $0.to + Self.reading
        }
        if !isInTable { fail("\(what) is not in the table") }
        if runs[run.name]?.contains(where: { $0.date == run.date }) == true { fail("\(what) is one too many") }
        runs[run.name, default: []].append(Run(date: run.date, start: run.start, end: checkedEnd(run, what)))
    }

    /// Returns the end of a run: by itself, on request, or with the daemon.
    private func checkedEnd(_ run: Diary.Run, _ what: String) -> RunLoop.Instant {
        guard let life = diary.lives.first(where: { $0.time.contains(run.start) }) else {
            fail("\(what) was begun while there was no daemon")
            return run.start
        }
        // Commands that run at a stop may continue for a while.
        let lifeEnd = life.time.upperBound + (life.hasStopped ? WatchedCron.drain : .zero)
        let limits = limits(of: run).map { run.start + $0 }
        if let asked = run.asked, !limits.contains(asked), !life.hasStopped || asked < lifeEnd {
            fail("\(what) was asked to end at \(asked), for no reason")
        }
        let grace = run.isStubborn ? WatchedCron.grace : .zero
        let latest = min(limits.max().map { $0 + grace } ?? .distantFuture, lifeEnd + grace)
        if let end = run.end {
            if end > latest { fail("\(what) has lived too long, until \(end)") }
            return end
        }
        if run.asked == nil, run.planned < life.time.upperBound { fail("\(what) was ended before \(run.planned)") }
        return min(run.isStubborn ? latest : run.asked ?? latest, run.planned)
    }

    /// Returns the limits that the run may have had, from the present table or the previous one.
    private func limits(of run: Diary.Run) -> [Duration] {
        diary.tables.indices.filter {
            diary.tables[$0].from <= run.start
                && ($0 + 1 == diary.tables.count || run.start <= diary.tables[$0 + 1].from + Self.reading)
        }.compactMap { index in diary.tables[index].table.jobs.first { $0.name == run.name }?.limit?.duration }
    }

    private func checkOverlaps(_ runs: [Run]) {
        for (one, next) in zip(runs, runs.dropFirst()) where next.start < one.end && !hasEnded(one.start...next.start) {
            fail("two runs of one job at a time, for \(one.date) and for \(next.date)")
        }
    }

    private func hasEnded(_ time: ClosedRange<RunLoop.Instant>) -> Bool {
        diary.lives.contains { time.contains($0.time.upperBound) }
    }

    // MARK: Dates

    private func check(_ period: Period) {
        let runs = runs[period.job.name] ?? []
        let byDate = Dictionary(runs.map { ($0.date, $0) }) { first, _ in first }
        var date = diary.time(at: period.from)
        let known = knows(from: period.from)
        var following = 0
        // Dates missed at the end are never made up for.
        let to =
            diary.lives.map(\.time).filter { $0.lowerBound < period.to }.map { min($0.upperBound, period.to) }.max()
            ?? period.to
        while let next = period.job.dates.next(after: date) {
            date = next
            let due = diary.instant(of: date)
            if due > to - Self.moment { break }
            while following < runs.count, runs[following].start < due { following += 1 }
            // While the table changes, either outcome is right.
            if due < known { continue }
            let former = following > 0 ? runs[following - 1] : nil
            let latter = following < runs.count ? runs[following] : nil
            if let run = byDate[date] {
                checkDelay(period.job, run, due)
            } else if wasLost(due, runs[following...].first { $0.date > date }?.start ?? period.to) {
                continue
            } else if !hasReason(period, date, due, former, latter) {
                fail("\(period.job.name) has no run for \(date), due at \(due)")
            }
        }
    }

    /// Returns the instant from which a new job counts: a daemon that ends before it has noted the job does not know it
    /// at its next start.
    private func knows(from instant: RunLoop.Instant) -> RunLoop.Instant {
        var known = instant + Self.reading
        for (life, next) in zip(diary.lives, diary.lives.dropFirst())
        where instant <= life.time.upperBound && life.time.upperBound < known {
            known = next.time.lowerBound + Self.reading
        }
        return known
    }

    /// Checks that a run that begins later than at its date has waited for a reason.
    private func checkDelay(_ job: Job, _ run: Run, _ due: RunLoop.Instant) {
        if job.missed == .skip, lateness(run.date, due) > .seconds(70) {
            fail("\(job.name) for \(run.date) is made up for")
        }
        // If the clock was set back before the run's turn came, its date came again.
        let isLate = run.start - due > Self.moment && diary.time(at: run.start) - run.date > Self.moment
        guard isLate, !wasReleased(just: run.start) else { return }
        fail("\(job.name) for \(run.date) has waited for nothing, from \(due) to \(run.start)")
    }

    /// Returns `true` if a date has a reason to have no run of its own.
    ///
    /// - Parameters:
    ///   - former: the last run that had begun when the date came.
    ///   - latter: the run after that.
    private func hasReason(
        _ period: Period, _ date: RunLoop.WallTime, _ due: RunLoop.Instant, _ former: Run?, _ latter: Run?
    ) -> Bool {
        if period.job.missed == .each { return false }
        // The previous run was still under way, or waited for its start.
        if let former, due <= former.end + .seconds(1) { return true }
        if let latter, latter.date < date { return true }
        return period.job.missed == .skip && lateness(date, due) > .seconds(50)
    }

    /// Returns `true` if the daemon may have noted a date just before it ended.
    private func wasLost(_ due: RunLoop.Instant, _ next: RunLoop.Instant) -> Bool {
        diary.lives.contains { life in
            let end = life.time.upperBound
            return due <= end && end <= next && (end - due <= Self.moment || wasReleased(just: end))
        }
    }

    private func wasReleased(just end: RunLoop.Instant) -> Bool {
        // The first release that is not too long ago.
        var (low, high) = (0, releases.count)
        while low < high {
            let middle = (low + high) / 2
            if releases[middle] < end - Self.moment { low = middle + 1 } else { high = middle }
        }
        return low < releases.count && releases[low] <= end
    }

    /// Returns the delay until the daemon first saw that a date had come.
    private func lateness(_ date: RunLoop.WallTime, _ due: RunLoop.Instant) -> Duration {
        let seen = diary.lives.map(\.time).first { due <= $0.upperBound }.map { max(due, $0.lowerBound) } ?? due
        return diary.time(at: seen) - date
    }
}
