import Logging
import RunLoopKit
import RunLoopUnix

/// A run of a job: a child, from its start to its end. Used on the daemon's loop.
final class Run {
    /// The date of the run; `nil` if a command requested it.
    let date: RunLoop.WallTime?
    /// The time when the run's child was started; `nil` before.
    private(set) var start: (date: RunLoop.WallTime, instant: RunLoop.Instant)?
    private(set) var child: ChildProcess?
    private(set) var output: Output?

    private let loop: RunLoop
    private let grace: Duration
    private let log: Logger
    private var reason: Reason?

    /// The reason why the run's child was asked to end.
    private enum Reason {
        case limit
        case request
    }

    /// The outcome of a run.
    enum Outcome: Sendable, Hashable, CustomStringConvertible {
        /// The child has ended by itself.
        case ended(ChildProcess.ExitStatus)
        /// The child took longer than its limit.
        case tookTooLong(ChildProcess.ExitStatus)
        /// A command has asked the child to end.
        case stopped(ChildProcess.ExitStatus)
        /// The child could not be started.
        case notStarted(String)
        /// The run was cancelled before its child was started.
        case calledOff

        var isSuccess: Bool {
            if case .ended(let status) = self { status.isSuccess } else { false }
        }

        var description: String {
            switch self {
            case .ended(let status): "\(status)"
            case .tookTooLong(let status): "took too long, \(status)"
            case .stopped(let status): "was stopped, \(status)"
            case .notStarted(let reason): "not started: \(reason)"
            case .calledOff: "called off"
            }
        }
    }

    /// - Parameter grace: the time from asking a child to end until it is killed.
    init(for date: RunLoop.WallTime?, on loop: RunLoop, grace: Duration, _ log: Logger) {
        (self.date, self.loop, self.grace, self.log) = (date, loop, grace, log)
    }

    /// Starts the child, and waits until it has ended and its output is complete.
    ///
    /// - Throws: `SystemError` if the child cannot be started.
    nonisolated(nonsending) func perform(_ job: Job) async throws -> Outcome {
        let child = try ChildProcess.spawn(
            .path("/bin/sh"), arguments: ["-c", job.command],
            environment: .updating(["CRON_JOB": job.name, "CRON_DATE": date.map { "\($0)" }]),
            standardInput: .null, standardOutput: .pipe, standardError: .pipe, group: .newGroup)
        self.child = child
        start = (loop.wallTime, loop.now)
        log.info("[\(job.name)] process \(child.processIdentifier)\(date.map { " for \($0)" } ?? "")")
        do {
            return try await follow(child, job)
        } catch {
            // Otherwise the child would run unattended.
            kill()
            throw error
        }
    }

    private nonisolated(nonsending) func follow(_ child: ChildProcess, _ job: Job) async throws -> Outcome {
        let output = Output(of: child, on: loop) { [log] in log.info("[\(job.name)] \($0)") }
        self.output = output
        let (ends, end) = AsyncStream.makeStream(of: ChildProcess.ExitStatus.self)
        let source = ChildSource(child) { child, status in
            // Processes left behind by the shell end with it: here its group can be reached for the last time.
            _ = try? child.kill(.kill)
            end.yield(status)
        }
        defer { source.invalidate() }
        try loop.add(source, forMode: .common)
        let limit = job.limit.map { limit in
            loop.perform(afterDelay: limit.duration, inModes: .common) { [self] in askToEnd(because: .limit) }
        }
        defer { limit?.cancel() }
        guard let status = await ends.first(where: { _ in true }) else { throw CancellationError() }
        self.child = nil
        await output.end()
        return switch reason {
        case nil: .ended(status)
        case .limit: .tookTooLong(status)
        case .request: .stopped(status)
        }
    }

    /// Asks the child, if any, to end, and kills it if that takes too long.
    func stop() {
        askToEnd(because: .request)
    }

    private func askToEnd(because reason: Reason) {
        guard let child else { return }
        self.reason = self.reason ?? reason
        RunLoop.sometimes("a run took too long", if: reason == .limit)
        do {
            try child.stop(within: grace, on: loop)
        } catch {
            log.error("\(error)")
        }
    }

    /// Kills the child at once.
    func kill() {
        _ = try? child?.kill(.kill)
    }
}
