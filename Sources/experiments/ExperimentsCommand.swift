import ArgumentParser
import FoundationEssentials
import Glibc
import Scenarios

@main
struct Experiments: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "experiments",
        abstract: "Shows, mode by mode, when the timers of a run loop fire.",
        subcommands: [List.self, Run.self, Play.self, Compare.self])
}

enum OutputFormat: String, ExpressibleByArgument, CaseIterable {
    case text, json
}

enum ClockName: String, ExpressibleByArgument, CaseIterable {
    case virtual, real
}

struct ClockOptions: ParsableArguments {
    @Option(help: "The clock to play on; virtual time is exact and takes no time.")
    var clock = ClockName.virtual

    @Option(help: "On the real clock, what every time is multiplied by.")
    var scale = 1.0

    var stageClock: Stage.Clock {
        clock == .virtual ? .virtual : .real(scale: scale)
    }

    func validate() throws {
        guard scale > 0, scale.isFinite else { throw ValidationError("--scale takes a number above zero, as 0.1") }
    }
}

struct List: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Lists the experiments.")

    @Argument(help: "Print this experiment's scenario, to be copied and changed.")
    var id: String?

    func run() throws {
        guard let id else {
            for experiment in Experiment.all {
                print(experiment.id.padding(to: 5) + experiment.title)
            }
            return
        }
        guard let experiment = Experiment.named(id) else { throw ValidationError("there is no experiment \(id)") }
        guard case .scenario(_, let json) = experiment.play else {
            throw ValidationError("\(id) is a program, not a scenario: a scenario has no threads and no delayed calls")
        }
        print(String(decoding: json, as: UTF8.self), terminator: "")
    }
}

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

    func validate() throws {
        guard all != !ids.isEmpty else { throw ValidationError("name experiments, as X4 X5, or say --all") }
        for id in ids where Experiment.named(id) == nil {
            throw ValidationError("there is no experiment \(id); `experiments list` shows them")
        }
    }

    func run() throws {
        let experiments = all ? Experiment.all : ids.compactMap(Experiment.named)
        var equal = 0
        for experiment in experiments {
            let comparison = Comparison(experiment, on: clock.stageClock)
            print(format == .text ? comparison.text + "\n" : comparison.json)
            equal += comparison.isEqual ? 1 : 0
        }
        if format == .text {
            print("\(equal) of \(experiments.count) experiments equal to the documents (\(clock.clock.rawValue) clock)")
        }
        if equal < experiments.count { throw ExitCode(1) }
    }
}

struct Play: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Plays a scenario and prints what happens.",
        discussion: "The exit status is 65 for a malformed scenario and 66 for a file that cannot be read.")

    @Argument(help: "A scenario file, or the name of a built-in one, as X5.")
    var file: String

    @OptionGroup var clock: ClockOptions

    @Option(help: "How to print.")
    var format = OutputFormat.text

    @Option(help: "Draw the timeline into this file.")
    var svg: String?

    func run() throws {
        let scenario = try load()
        let player = ScenarioPlayer(scenario, clock: clock.stageClock)
        // As it happens, and without keeping it: a scenario may have millions of events.
        if format == .json && svg == nil { return player.play { print($0.json) } }
        let events = player.play()
        switch format {
        case .json: for event in events { print(event.json) }
        case .text: print(TextChart(scenario: scenario, events: events).render(), terminator: "")
        }
        if let svg { try write(TimelineSVG(scenario: scenario, events: events).render(), into: svg) }
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

struct Compare: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows all kinds of timers side by side: alone, beside a busy loop, during a drag, and both.")

    @OptionGroup var clock: ClockOptions

    @Option(help: "How to print.")
    var format = OutputFormat.text

    @Option(help: "Draw the timelines into this file.")
    var svg: String?

    func run() throws {
        let gallery = Gallery(on: clock.stageClock)
        print(format == .text ? gallery.text : gallery.json)
        if let svg { try write(gallery.svg, into: svg) }
    }
}

private func write(_ drawing: String, into path: String) throws {
    do {
        try Data(drawing.utf8).write(to: URL(filePath: path))
    } catch {
        try fail("\(path): cannot be written", status: 73)
    }
}

private func fail(_ message: String, status: Int32) throws -> Never {
    let line = Array((message + "\n").utf8)
    _ = Glibc.write(STDERR_FILENO, line, line.count)
    throw ExitCode(status)
}

extension String {
    func padding(to width: Int) -> String {
        self + String(repeating: " ", count: max(1, width - count))
    }
}
