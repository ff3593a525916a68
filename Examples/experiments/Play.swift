import ArgumentParser
import Scenarios

struct Play: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Plays scenarios and prints what happens.",
        discussion: """
            Each file holds one scenario or more, such as one a line. A file with a single scenario, named alone, prints \
            one event a line with --format json; otherwise each scenario prints one line. A malformed scenario is named \
            on standard error, and the others are played.

            The exit status is 65 for a malformed scenario and 66 for a file that cannot be read; of several faults, the \
            first counts.
            """)

    @Argument(help: "Files, names of built-in scenarios, as X5, or - for standard input, which is the default.")
    var files: [String] = []

    @OptionGroup var clock: ClockOptions

    @Option(help: "How to print.")
    var format = OutputFormat.text

    @Option(help: "Draw the charts into this file.")
    var svg: String?

    func run() throws {
        var faults: [Int32] = []
        var pictures: [SVGChart] = []
        for file in files.isEmpty ? ["-"] : files {
            let input = Input(file)
            var reader = ScenarioReader(input.read)
            var isAlone = files.count == 1 && file != "-"
            while let entry = reader.next(), !input.isUnreadable {
                isAlone = isAlone && reader.isAtEnd
                switch entry.scenario {
                case .success(let scenario):
                    let place = isAlone ? nil : ScenarioPlace(input: input.name, line: entry.line)
                    if let picture = play(scenario, at: place) { pictures.append(picture) }
                case .failure(let error):
                    complain("\(input.name): \(error)")
                    faults.append(65)
                }
            }
            if input.isUnreadable {
                complain("\(input.name): cannot be read")
                faults.append(66)
            }
        }
        if let svg, !pictures.isEmpty { try write(SVGChart.document(pictures), into: svg) }
        if let status = faults.first { throw ExitCode(status) }
    }

    /// - Parameter place: `nil` for a single scenario.
    private func play(_ scenario: Scenario, at place: ScenarioPlace?) -> SVGChart? {
        let player = ScenarioPlayer(scenario, clock: clock.testbedClock)
        let printer = EventPrinter(place)
        if format == .json && svg == nil {
            // Printed at once and not kept: a scenario may have millions of events.
            player.play(printer.print)
            printer.end()
            return nil
        }
        let events = player.play()
        switch format {
        case .json:
            for event in events { printer.print(event) }
            printer.end()
        case .text:
            let chart = TextChart(scenario: scenario, events: events).render()
            print((place.map { "\($0)\n\n" } ?? "") + chart + (place == nil ? "" : "\n"), terminator: "")
        }
        return svg.map { _ in SVGChart(scenario: scenario, events: events, title: place?.description) }
    }
}
