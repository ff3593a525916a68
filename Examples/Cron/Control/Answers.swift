import RunLoopKit
import RunLoopUnix

/// Performs commands. Used on the daemon's loop.
///
/// An answer has any number of lines, followed by one that begins with `OK`, or with `ERR` and a reason. Lines consist
/// of pairs such as `runs=3`; an unknown value is `-`.
final class Answers {
    private let scheduler: Scheduler
    private let file: JobFile
    private let ledger: Ledger

    init(_ scheduler: Scheduler, _ file: JobFile, _ ledger: Ledger) {
        (self.scheduler, self.file, self.ledger) = (scheduler, file, ledger)
    }

    /// The reason for refusing a command.
    private struct Refusal: Error {
        let reason: String
    }

    nonisolated(nonsending) func answer(_ line: String) async -> String {
        do {
            guard let command = Command(line) else { throw Refusal(reason: "commands are \(Command.usage)") }
            return try await carryOut(command).map { $0 + "\n" }.joined() + "OK\n"
        } catch let refusal as Refusal {
            return "ERR \(refusal.reason)\n"
        } catch {
            return "ERR \(error)\n"
        }
    }

    private nonisolated(nonsending) func carryOut(_ command: Command) async throws -> [String] {
        switch command {
        case .status: return status
        case .list: return scheduler.jobs.map(summary)
        case .show(let name): return details(try job(name))
        case .history: return scheduler.history.map(past)
        case .run(let name):
            let job = try job(name)
            guard !scheduler.isStopping else { throw Refusal(reason: "the daemon stops") }
            guard !job.isRetired else { throw Refusal(reason: "\(name) is in the table no more") }
            guard job.run == nil else { throw Refusal(reason: "\(name) still runs") }
            scheduler.begin(job, for: nil)
            return []
        case .stop(let name):
            let job = try job(name)
            guard job.run != nil else { throw Refusal(reason: "\(name) does not run") }
            scheduler.stop(job)
            return []
        case .reload:
            try await file.reload()
            return []
        }
    }

    private func job(_ name: String) throws -> ScheduledJob {
        guard let job = scheduler[name] else { throw Refusal(reason: "there is no job \(name)") }
        return job
    }

    // MARK: Lines

    private var status: [String] {
        [
            "jobs=\(scheduler.jobs.count { !$0.isRetired }) running=\(scheduler.runningRuns) waiting=\(scheduler.waitingRuns) "
                + "at-once=\(scheduler.settings.atOnce) stopping=\(scheduler.isStopping ? "yes" : "no")",
            "table: \(file.problem ?? "-")",
            "state: \(ledger.problem ?? "-")",
        ]
    }

    private func state(of job: ScheduledJob) -> String {
        guard let run = job.run else { return "idle" }
        return run.start == nil ? "waiting" : "running"
    }

    private func summary(of job: ScheduledJob) -> String {
        "\(job.job.name) \(state(of: job)) next=\(text(job.nextDate)) runs=\(job.counts.runs) failed=\(job.counts.failed) "
            + "skipped=\(job.counts.skipped) missed=\(job.counts.missed)"
    }

    private func details(_ job: ScheduledJob) -> [String] {
        var lines = [
            summary(of: job),
            "dates: \(job.job.dates)",
            "limit=\(text(job.job.limit)) missed-dates=\(job.job.missed)",
            "command: \(job.job.command)",
        ]
        if let run = job.run, let start = run.start {
            lines.append("runs since=\(start.date) for=\(text(run.date)) process=\(text(run.child?.processIdentifier))")
        }
        if let (run, outcome) = job.lastRun {
            lines.append("last since=\(text(run.start?.date)) for=\(text(run.date)): \(outcome)")
        }
        return lines + ((job.run?.output ?? job.lastRun?.run.output)?.lastLines ?? []).map { "| \($0)" }
    }

    private func past(_ past: Scheduler.Past) -> String {
        "\(text(past.run.start?.date)) \(past.name) for=\(text(past.run.date)) took=\(Int(past.took / .milliseconds(1)))ms: \(past.outcome)"
    }

    private func text(_ value: (some CustomStringConvertible)?) -> String { value.map { "\($0)" } ?? "-" }
}
