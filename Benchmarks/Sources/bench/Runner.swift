import Commands
import Foundation

/// Runs peers, one at a time.
struct Runner {
    /// The directory of the executables.
    let directory: URL
    /// The number of seconds that a workload may take.
    let budget: Int

    struct Outcome {
        var metrics: [(name: String, value: Double)] = []
        var failure: String?
        /// `true` if the peer has no call for the workload.
        var isNotApplicable = false
        var duration = Duration.zero
    }

    func run(_ peer: Peer, _ workload: Workload, size: Int, count: Int) throws -> Outcome {
        let program = directory.appendingPathComponent("\(peer.program)Peer").path
        var command = [program, peer.form, workload.kind, "\(size)", "\(count)"]
        var environment = ProcessInfo.processInfo.environment
        environment["BENCH_BUDGET"] = "\(budget)"
        environment["BENCH_PLACEMENT"] = workload.placement
        environment["SWIFT_BACKTRACE"] = "enable=no"
        if workload.placement != nil { command = ["taskset", "-c", "0"] + command }
        command = ["timeout", "\(5 * budget)"] + command

        let start = ContinuousClock.now
        let (output, status) = try capture(command, environment: environment)
        var outcome = Outcome()
        outcome.duration = ContinuousClock.now - start
        for line in output.split(separator: "\n") {
            let fields = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
            if fields[0] == "not applicable" {
                outcome.isNotApplicable = true
            } else if fields.count == 2, fields[0] == "gave up" {
                outcome.failure = fields[1]
            } else if fields.count == 3, let value = Double(fields[1]) {
                outcome.metrics.append((fields[0], value))
            }
        }
        if status != 0 { outcome.failure = status == 124 ? "took too long" : "ended with \(status)" }
        return outcome
    }
}
