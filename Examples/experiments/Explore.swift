import ArgumentParser
import RunLoopExploration
import Scenarios

struct Explore: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Looks for a drag that makes a timer of a scenario late.",
        discussion: """
            The scenario is played again and again on virtual time, with drags that begin at other moments. If one of \
            them makes a timer late, the command prints which, with as few drags as it takes, the chart of what \
            happens then, and a token; with --replay it plays that again.

            The exit status is 1 if a timer is late, 65 for a malformed scenario and 66 for a file that cannot be read.
            """)

    @Argument(help: "A file with a scenario, the name of a built-in one, as X4, or - for standard input.")
    var file: String

    @Option(help: "How late a timer may fire, in seconds.")
    var late = 1.0

    @Option(help: "How many drags there may be.")
    var drags = 1

    @Option(help: "How long a drag lasts, in seconds.")
    var lasting = 2.0

    @Option(help: "The mode of a drag.")
    var mode = "tracking"

    @Option(help: "How many schedules to try.")
    var schedules = 1000

    @Option(help: "The seed of the schedules.")
    var seed: UInt64 = 0

    @Option(help: "The token of a schedule to play once more.")
    var replay: String?

    func validate() throws {
        guard late >= 0, lasting > 0, late < 1e9, lasting < 1e9 else {
            throw ValidationError("--late and --lasting take seconds, as 0.5")
        }
        guard drags > 0, schedules > 0 else { throw ValidationError("--drags and --schedules take numbers above zero") }
    }

    func run() throws {
        let input = Input(file)
        var reader = ScenarioReader(input.read)
        guard let entry = reader.next(), !input.isUnreadable else {
            complain("\(input.name): cannot be read")
            throw ExitCode(66)
        }
        guard case .success(let scenario) = entry.scenario else {
            if case .failure(let error) = entry.scenario { complain("\(input.name): \(error)") }
            throw ExitCode(65)
        }
        let explorer = ScenarioExplorer(
            scenario, mode: mode, lasting: Int64(lasting * 1e9), atMost: drags, latest: Int64(late * 1e9))
        if let replay {
            guard let token = ScheduleToken(replay) else {
                throw ValidationError("--replay takes a token, as 0:main@1>a")
            }
            return draw(scenario, explorer.replay(token))
        }
        switch explorer.explore(Exploration(schedules: schedules, seed: seed)) {
        case .passed(let schedules, _): print("no timer is more than \(late) s late in \(schedules) schedules")
        case .failed(let finding):
            print("\(finding.fault), found with schedule \(finding.schedules)\n")
            draw(scenario, explorer.replay(finding.token))
            print("\nto play it again: --replay '\(finding.token)'")
            throw ExitCode(1)
        }
    }

    private func draw(_ scenario: Scenario, _ events: [ScenarioEvent]) {
        print(TextChart(scenario: scenario, events: events).render(), terminator: "")
    }
}
