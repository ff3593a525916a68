import Logging
import RunLoopKit
import RunLoopUnix

/// Runs jobs at their dates, a limited number at once. Used on the daemon's loop.
final class Scheduler {
    struct Settings {
        /// The number of children that may run at once.
        var atOnce = 4
        /// The time from asking a child to end until it is killed.
        var grace = Duration.seconds(5)
    }

    /// The jobs in the order of the table, followed by removed ones that still run.
    private(set) var jobs: [ScheduledJob] = []
    /// The latest runs that have ended, in order.
    private(set) var history: [Past] = []

    struct Past {
        let name: String
        let run: Run
        let took: Duration
        let outcome: Run.Outcome
    }

    let settings: Settings
    private let loop: RunLoop
    private let ledger: Ledger
    private let log: Logger
    /// The runs without a place yet, in the order of their arrival.
    private var waiting: [(run: Run, job: ScheduledJob)] = []
    /// The runs that have a place, with their tasks.
    private var running: [(run: Run, task: Task<Void, any Error>)] = []
    private(set) var isStopping = false

    private static let keptHistory = 100

    init(_ settings: Settings, on loop: RunLoop, _ ledger: Ledger, _ log: Logger) {
        (self.settings, self.loop, self.ledger, self.log) = (settings, loop, ledger, log)
    }

    subscript(name: String) -> ScheduledJob? { jobs.first { $0.job.name == name } }

    var waitingRuns: Int { waiting.count }
    var runningRuns: Int { running.count }

    // MARK: The table

    /// Replaces the table of jobs. An unchanged job keeps its dates, and running commands continue.
    func schedule(_ table: JobTable) {
        guard !isStopping else { return }
        var former = Dictionary(uniqueKeysWithValues: jobs.map { ($0.job.name, $0) })
        var next: [ScheduledJob] = []
        for job in table.jobs {
            if let known = former.removeValue(forKey: job.name) {
                if known.isRetired || known.job != job { known.change(to: job) }
                next.append(known)
            } else {
                next.append(ScheduledJob(job, after: ledger[job.name], on: loop) { [unowned self] in dateCame($0, $1) })
            }
        }
        let removed = jobs.filter { former[$0.job.name] === $0 }
        for job in removed { retire(job) }
        jobs = next + removed.filter { $0.run != nil }
        for job in next { note(job) }
        let names = Set(next.map(\.job.name))
        for name in ledger.names where !names.contains(name) { ledger.note(nil, of: name) }
        ledger.saveSoon()
    }

    /// Notes the progress of a job. If its last date waits for its start, that start notes it.
    private func note(_ job: ScheduledJob) {
        if let run = job.run, run.start == nil { return }
        ledger.note(job.mark, of: job.job.name)
    }

    private func retire(_ job: ScheduledJob) {
        job.retire()
        if let run = job.run, run.start == nil { callOff(run, of: job) }
    }

    // MARK: Runs

    private func dateCame(_ job: ScheduledJob, _ date: RunLoop.WallTime) {
        guard job.run != nil else { return begin(job, for: date) }
        job.counts.skipped += 1
        RunLoop.sometimes("a date was skipped, because its job still ran")
        log.warning("[\(job.job.name)] still runs, \(date) is skipped")
        note(job)
        ledger.saveSoon()
    }

    /// Runs a job as soon as there is a place.
    ///
    /// - Parameter date: the date of the run; `nil` if a command requested it.
    func begin(_ job: ScheduledJob, for date: RunLoop.WallTime?) {
        let run = Run(for: date, on: loop, grace: settings.grace, log)
        job.run = run
        waiting.append((run, job))
        fillPlaces()
    }

    private func fillPlaces() {
        while running.count < settings.atOnce, !waiting.isEmpty {
            let (run, job) = waiting.removeFirst()
            let task = loop.task(name: job.job.name) { [self] in
                if run.date != nil { try await settle(job) }
                try Task.checkCancellation()
                return try await run.perform(job.job)
            } then: { [self] result in
                running.removeAll { $0.run === run }
                ended(run, of: job, result)
            }
            running.append((run, task))
        }
    }

    /// Waits, before a run starts, until its date is safely recorded, so that it never runs again for that date.
    private nonisolated(nonsending) func settle(_ job: ScheduledJob) async throws {
        try Task.checkCancellation()
        ledger.note(job.mark, of: job.job.name)
        try await ledger.save()
    }

    private func ended(_ run: Run, of job: ScheduledJob, _ result: Result<Run.Outcome, any Error>) {
        let outcome: Run.Outcome
        do {
            outcome = try result.get()
        } catch is CancellationError {
            outcome = .calledOff
        } catch {
            outcome = .notStarted("\(error)")
        }
        log.log(level: outcome.isSuccess ? .info : .warning, "[\(job.job.name)] \(outcome)")
        if outcome != .calledOff { job.counts.runs += 1 }
        if outcome != .calledOff, !outcome.isSuccess { job.counts.failed += 1 }
        history.append(
            Past(
                name: job.job.name, run: run, took: run.start.map { loop.now - $0.instant } ?? .zero, outcome: outcome))
        if history.count > Self.keptHistory { history.removeFirst() }
        job.lastRun = (run, outcome)
        job.run = nil
        if job.isRetired { jobs.removeAll { $0 === job } }
        fillPlaces()
    }

    /// Ends the run of a job, by asking its child to end, or by not starting it.
    func stop(_ job: ScheduledJob) {
        guard let run = job.run else { return }
        if run.start == nil { callOff(run, of: job) } else { run.stop() }
    }

    private func callOff(_ run: Run, of job: ScheduledJob) {
        if let place = waiting.firstIndex(where: { $0.run === run }) {
            waiting.remove(at: place)
            ended(run, of: job, .success(.calledOff))
        } else {
            // The task waits for the disk.
            running.first { $0.run === run }?.task.cancel()
        }
    }

    // MARK: Stopping

    /// Stops starting runs.
    func stopStarting() {
        isStopping = true
        for job in jobs { retire(job) }
    }

    /// Waits for all runs under way.
    nonisolated(nonsending) func finish() async {
        while let (_, task) = running.first { _ = await task.result }
    }

    /// Asks all runs to end, kills the remaining ones, and waits for them.
    nonisolated(nonsending) func end() async {
        for (run, _) in running { run.stop() }
        await finish()
    }

    /// Kills all runs.
    func kill() {
        for (run, _) in running { run.kill() }
    }
}
