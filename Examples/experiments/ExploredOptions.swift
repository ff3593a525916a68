import ArgumentParser
import RunLoopExploration
import Scenarios

/// A scenario with drags that may begin at any moment.
struct ExploredOptions: ParsableArguments {
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

    func validate() throws {
        guard late >= 0, lasting > 0, late < 1e9, lasting < 1e9 else {
            throw ValidationError("--late and --lasting take seconds, as 0.5")
        }
        guard drags > 0 else { throw ValidationError("--drags takes a number above zero") }
    }

    /// Reads the scenario. A malformed one, or a file that cannot be read, ends the command.
    func read() throws -> (scenario: Scenario, explorer: ScenarioExplorer) {
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
        return (scenario, explorer)
    }

    /// The options as words of a command.
    var words: String {
        var words = [shellWord(file)]
        if late != 1 { words.append("--late \(late)") }
        if drags != 1 { words.append("--drags \(drags)") }
        if lasting != 2 { words.append("--lasting \(lasting)") }
        if mode != "tracking" { words.append("--mode \(shellWord(mode))") }
        return words.joined(separator: " ")
    }

    /// Returns a text as one word of a shell command.
    private func shellWord(_ text: String) -> String {
        let isPlain = !text.isEmpty && text.allSatisfy { $0.isLetter || $0.isNumber || "._-/".contains($0) }
        return isPlain ? text : "'\(text.replacing("'", with: #"'\''"#))'"
    }
}

/// Reads a token.
///
/// - Parameter option: the word before the token.
func token(_ text: String, of option: String) throws -> ScheduleToken {
    if let token = ScheduleToken(text) { return token }
    throw ValidationError("\(option) takes a token, as 0:main@1>a; explore prints one")
}
