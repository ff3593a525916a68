import ArgumentParser
import RunLoopExploration
import Scenarios

struct Explore: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Looks for a drag that makes a timer of a scenario late.",
        discussion: """
            The scenario is played again and again on virtual time, with drags that begin at other moments. If one of \
            them makes a timer late, the command prints which, with as few drags as it takes, the chart of what \
            happens then, and a token; with --replay it plays that again, and debug steps through it.

            The exit status is 1 if a timer is late, 65 for a malformed scenario and 66 for a file that cannot be read.
            """)

    @OptionGroup var options: ExploredOptions

    @Option(help: "How many schedules to try.")
    var schedules = 1000

    @Option(help: "The seed of the schedules.")
    var seed: UInt64 = 0

    @Option(help: "The token of a schedule to play once more.")
    var replay: String?

    func validate() throws {
        guard schedules > 0 else { throw ValidationError("--schedules takes a number above zero") }
    }

    func run() throws {
        let (scenario, explorer) = try options.read()
        if let replay {
            return draw(scenario, explorer.replay(try token(replay, of: "--replay")))
        }
        switch explorer.explore(Exploration(schedules: schedules, seed: seed)) {
        case .passed(let schedules): print("no timer is more than \(options.late) s late in \(schedules) schedules")
        case .failed(let finding):
            print("\(finding.fault), found with schedule \(finding.schedules)\n")
            draw(scenario, explorer.replay(finding.token))
            print("\nto step through it: experiments debug \(options.words) \(finding.token.shellWord)")
            print("to play it again: --replay \(finding.token.shellWord)")
            throw ExitCode(1)
        }
    }

    private func draw(_ scenario: Scenario, _ events: [ScenarioEvent]) {
        print(TextChart(scenario: scenario, events: events).render(), terminator: "")
    }
}
