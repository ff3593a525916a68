import ArgumentParser
import FoundationEssentials
import Scenarios

struct Play: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Plays a scenario and prints what happens.",
        discussion: "The exit status is 65 for a malformed scenario and 66 for a file that cannot be read.")

    @Argument(help: "A scenario file, or the name of a built-in one, as X5.")
    var file: String

    @OptionGroup var clock: ClockOptions

    @Option(help: "How to print.")
    var format = OutputFormat.text

    @Option(help: "Draw the chart into this file.")
    var svg: String?

    func run() throws {
        let scenario = try load()
        let player = ScenarioPlayer(scenario, clock: clock.testbedClock)
        // As it happens, and without keeping it: a scenario may have millions of events.
        if format == .json && svg == nil { return player.play { print($0.json) } }
        let events = player.play()
        switch format {
        case .json: for event in events { print(event.json) }
        case .text: print(TextChart(scenario: scenario, events: events).render(), terminator: "")
        }
        if let svg { try write(SVGChart(scenario: scenario, events: events).render(), into: svg) }
    }

    private func load() throws -> Scenario {
        if !FileManager.default.fileExists(atPath: file),
            case .scenario(let scenario, _)? = Experiment.named(file)?.play
        {
            return scenario
        }
        guard let data = FileManager.default.contents(atPath: file) else {
            try fail("\(file): cannot be read", status: 66)
        }
        do {
            return try Scenario(json: [UInt8](data))
        } catch {
            try fail("\(file): \(error)", status: 65)
        }
    }
}
