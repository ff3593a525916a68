import Glibc
import RunLoopKit
import RunLoopUnix

/// Runs jobs at their dates. All of it is tasks of one loop.
final class Scheduler {
    private let loop: RunLoop
    private let places: Places
    /// A task for each job, which waits for its dates.
    private var clocks: [Job: Task<Void, any Error>] = [:]
    /// What has been started and has not ended.
    private var runs: [Job: Task<Void, any Error>] = [:]
    private var children: [Job: ChildProcess] = [:]

    /// - Parameter limit: how many children there are at once.
    init(on loop: RunLoop, atMost limit: Int) {
        self.loop = loop
        places = Places(limit)
    }

    /// From now on there are these jobs. One that was there before keeps its dates, and what runs goes on.
    func schedule(_ jobs: Set<Job>) {
        for (job, clock) in clocks where !jobs.contains(job) {
            clock.cancel()
            clocks[job] = nil
        }
        for job in jobs where clocks[job] == nil {
            clocks[job] = loop.task(name: job.command) { [self] in try await wait(for: job) }
        }
    }

    private nonisolated(nonsending) func wait(for job: Job) async throws {
        switch job.dates {
        case .after(let delay):
            try await loop.clock.sleep(for: delay)
            start(job)
        case .every(let period):
            for try await _ in loop.clock.ticks(every: period) { start(job) }
        }
    }

    private func start(_ job: Job) {
        guard runs[job] == nil else { return say("still runs", of: job) }
        runs[job] = loop.task { [self] in
            await places.take()
            defer { places.giveBack() }
            try Task.checkCancellation()
            try await run(job)
        } then: { [self] result in
            runs[job] = nil
            if case .failure(let error) = result, !(error is CancellationError) { say("\(error)", of: job) }
        }
    }

    private nonisolated(nonsending) func run(_ job: Job) async throws {
        let child = try ChildProcess.spawn(
            .path("/bin/sh"), arguments: ["-c", job.command], standardInput: .null, standardOutput: .pipe,
            group: .newGroup)
        children[job] = child
        let limit = loop.task { [self] in
            try await loop.clock.sleep(for: job.limit)
            say("has taken too long", of: job)
            try child.stop(within: Scheduler.grace, on: loop)
        }
        defer {
            limit.cancel()
            children[job] = nil
        }
        do {
            try await Connection(reading: child.standardOutput, writing: nil, on: loop).withStream { output in
                for try await line in output.lines() { say(line, of: job) }
            }
        } catch {
            say("\(error)", of: job)
            try child.stop(within: Scheduler.grace, on: loop)
        }
        say("\(try await child.exit())", of: job)
    }

    /// How long a child that is asked to end has until it is killed.
    private static let grace = Duration.milliseconds(500)

    /// Waits for what runs; what waits for a place, and what comes later, is not started.
    nonisolated(nonsending) func finish() async {
        schedule([])
        for (job, run) in runs where children[job] == nil { run.cancel() }
        for run in runs.values { _ = await run.result }
    }

    /// Asks what runs to end, kills what does not, and waits for it.
    nonisolated(nonsending) func end() async {
        for child in children.values { try? child.stop(within: Scheduler.grace, on: loop) }
        await finish()
    }

    private func say(_ what: String, of job: Job) {
        print("[\(job.command)] \(what)")
        fflush(nil)
    }
}
