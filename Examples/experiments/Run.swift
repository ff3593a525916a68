import ArgumentParser

struct Run: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Runs experiments and compares them with the documents.",
        discussion: "The exit status is 1 if any count or grid point differs.")

    @Argument(help: "The experiments, as X4 X5.")
    var ids: [String] = []

    @Flag(help: "Run all of them.")
    var all = false

    @OptionGroup var clock: ClockOptions

    @Option(help: "How to print.")
    var format = OutputFormat.text

    @Option(help: "Write a page with timelines beside the rows into this file.")
    var page: String?

    func validate() throws {
        guard all != !ids.isEmpty else { throw ValidationError("name experiments, as X4 X5, or say --all") }
        for id in ids where Experiment.named(id) == nil {
            throw ValidationError("there is no experiment \(id); `experiments list` shows them")
        }
    }

    func run() throws {
        let experiments = all ? Experiment.all : ids.compactMap(Experiment.named)
        var comparisons: [Comparison] = []
        for experiment in experiments {
            let comparison = Comparison(experiment, on: clock.testbedClock)
            print(format == .text ? comparison.text + "\n" : comparison.json)
            comparisons.append(comparison)
        }
        let page = ExperimentsPage(comparisons: comparisons, clock: clock.clock)
        if format == .text { print(page.summary) }
        if let file = self.page { try write(page.html, into: file) }
        if !comparisons.allSatisfy(\.isEqual) { throw ExitCode(1) }
    }
}
