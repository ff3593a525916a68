import ArgumentParser
import Commands
import Foundation

@main
struct Bench: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Runs every workload with every peer, and prints tables of the medians.",
        discussion: """
            Peers take turns: repetition, workload, peer; a ratio compares neighbours in time. Only ratios within one \
            run mean anything.
            """)

    @Flag(help: "The important workloads, smaller; in under three minutes.")
    var quick = false

    @Option(help: "How often everything is measured. (default: 3, quick: 2)")
    var repetitions: Int?

    @Option(help: "How many whole runs; the goals then have a column for each, and their median decides.")
    var runs = 1

    @Option(help: "Only peers with names that begin so, separated by commas.")
    var peers: String?

    @Option(help: "Only workloads with names that begin so, separated by commas.")
    var workloads: String?

    @Option(help: "The file that the tables are written to, besides standard output.")
    var output: String?

    @Flag(help: "Lists peers and workloads.")
    var list = false

    func validate() throws {
        guard runs > 0, repetitions ?? 1 > 0 else { throw ValidationError("Runs and repetitions are at least 1.") }
    }

    func run() throws {
        let peers = Peer.all.filter { peer in
            self.peers.map { chosen in begins(peer.name, chosen) } ?? (!quick || Peer.quick.contains(peer.name))
        }
        let workloads = Workload.all.filter { workload in
            self.workloads.map { chosen in begins(workload.name, chosen) } ?? (!quick || workload.quick != nil)
        }
        guard !list else {
            print("peers: " + peers.map(\.name).joined(separator: "; "))
            print("workloads: " + workloads.map(\.name).joined(separator: "; "))
            return
        }
        let repetitions = self.repetitions ?? (quick ? 2 : 3)
        var results: [Results] = []
        for run in 1...runs {
            results.append(try measure(peers, workloads, repetitions, run))
            // After each run, so that the results so far are not lost.
            let report = report(results, peers, repetitions)
            if run == runs { print(report) }
            if let output { try report.write(toFile: output, atomically: true, encoding: .utf8) }
        }
    }

    private func begins(_ name: String, _ chosen: String) -> Bool {
        chosen.split(separator: ",").contains { name.hasPrefix($0) }
    }

    private func measure(
        _ peers: [Peer], _ workloads: [Workload], _ repetitions: Int, _ run: Int
    ) throws -> Results {
        let runner = Runner(directory: programs, budget: quick ? 2 : 20)
        var results = Results()
        // Workloads that take long, do not finish, or do not exist are not tried again.
        var settled: Set<[String]> = []
        for repetition in 1...repetitions {
            for workload in workloads {
                progress("run \(run), \(repetition) of \(repetitions): \(workload.name)")
                let usual = (size: workload.size, count: workload.count)
                let (size, count) = quick ? workload.quick ?? usual : usual
                for peer in peers where peer.differs(in: workload) && !settled.contains([peer.name, workload.name]) {
                    let outcome = try runner.run(peer, workload, size: size, count: count)
                    for (metric, value) in outcome.metrics {
                        results.add(value, metric, of: peer.name, in: workload.name, repetition: repetition)
                    }
                    if let failure = outcome.failure {
                        results.addFailure(failure, of: peer.name, in: workload.name)
                    }
                    let wasLong = outcome.duration > .seconds(runner.budget) * 0.7
                    if outcome.failure != nil || outcome.isNotApplicable || wasLong {
                        settled.insert([peer.name, workload.name])
                    }
                }
            }
        }
        progress("")
        return results
    }

    private func progress(_ text: String) {
        guard isatty(STDERR_FILENO) != 0 else { return }
        FileHandle.standardError.write(Data("\r\u{1B}[K\(text)".utf8))
    }

    /// Returns the tables of the last run, and the goals of all.
    private func report(_ runs: [Results], _ peers: [Peer], _ repetitions: Int) -> String {
        let date = Date.now.formatted(.iso8601.year().month().day())
        let results = runs.last!
        var parts = [
            """
            `\(command)`, \(date), \(ProcessInfo.processInfo.processorCount) cores, \
            \(runs.count > 1 ? "the last of \(runs.count) runs, " : "")medians of \(repetitions) \
            repetitions. In brackets: the ratio to the best of the loops other than ours, and to the floor where \
            there is one. Absolute times move from run to run by tens of percent; ratios do less.
            """
        ]
        parts += Table.all.compactMap { $0.markdown(results, peers) }
        if !results.failures.isEmpty {
            parts.append(
                "Not finished:\n\n"
                    + results.failures.map { "- \($0.peer), \($0.workload): \($0.reason)" }.joined(separator: "\n"))
        }
        if let goals = Goal.table(runs, peers) { parts.append(goals) }
        return parts.joined(separator: "\n\n") + "\n"
    }

    private var command: String {
        var words = ["make bench"]
        if quick { words.append("QUICK=1") }
        if let repetitions { words.append("REPETITIONS=\(repetitions)") }
        if runs > 1 { words.append("RUNS=\(runs)") }
        if let peers { words.append("PEERS=\"\(peers)\"") }
        if let workloads { words.append("WORKLOADS=\"\(workloads)\"") }
        return words.joined(separator: " ")
    }
}
