import ArgumentParser
import RunLoopExploration
import Scenarios

struct Debug: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Steps through a schedule of a scenario that explore has found.",
        discussion: """
            The commands come from standard input, a line each: n goes a step forward, b a step back, and ? lists the \
            others. The options are those of explore.

            The exit status is 65 for a malformed scenario and 66 for a file that cannot be read.
            """)

    @OptionGroup var options: ExploredOptions

    @Argument(help: "The token of the schedule; 0: for what usually happens.")
    var token: String

    func validate() throws {
        guard options.file != "-" else {
            throw ValidationError("debug reads commands from standard input; name a file or a built-in scenario")
        }
        _ = try experiments.token(token, of: "debug")
    }

    func run() throws {
        let token = try experiments.token(token, of: "debug")
        try options.read().explorer.stepper(token).talk()
    }
}
