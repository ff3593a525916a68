import ExampleTestSupport
import FoundationEssentials
import Glibc
import Testing

@testable import Scenarios

@Suite("experiments play")
struct PlayTests {
    // MARK: One scenario

    @Test("a file with one scenario, named alone, prints an event a line", arguments: ["X5", "x5"])
    func alone(name: String) throws {
        let scenario = try read(Self.run("list X5").output)
        let events = ScenarioPlayer(scenario).play()
        let json = Self.run("play \(name) --format json")
        #expect(json.output == events.map { $0.json + "\n" }.joined())
        #expect(json.status == 0)
        #expect(Self.run("play \(name)").output == TextChart(scenario: scenario, events: events).render())
    }

    @Test("a scenario may come through a pipe, on several lines")
    func aloneThroughPipe() {
        let direct = Self.run("play X5 --format json")
        #expect(Self.run("list X5 | \(Self.program) play /dev/stdin --format json") == direct)
    }

    // MARK: Several

    @Test("each of several files prints a line with its place")
    func files() {
        let played = Self.run("play X1 X5 --format json")
        #expect(played.output == Self.line("X1", 1, "X1") + Self.line("X5", 1, "X5"))
        #expect(played.status == 0)
    }

    @Test("each of several lines on standard input prints a line", arguments: ["", "-"])
    func standardInput(argument: String) {
        let played = Self.run("play \(argument) --format json", input: #"{"duration":1}"# + "\n" + #"{"duration":2}"#)
        #expect(
            played.output == """
                {"input":"standard input","line":1,"events":[{"t":1.0,"event":"end"}]}
                {"input":"standard input","line":2,"events":[{"t":2.0,"event":"end"}]}

                """)
        #expect(played.status == 0)
    }

    @Test("a file may hold several scenarios, and stand among others")
    func severalInFile() throws {
        let file = TemporaryFile("{\"duration\":1}\n{\n\"duration\":2}\n{\"duration\":3}")
        let end = ["1.0", "2.0", "3.0"].map { "\"events\":[{\"t\":\($0),\"event\":\"end\"}]}\n" }
        let lines = zip([1, 2, 4], end).map { "{\"input\":\"\(file.path)\",\"line\":\($0),\($1)" }.joined()
        #expect(Self.run("play \(file.path) --format json").output == lines)
        #expect(Self.run("play \(file.path) X1 --format json").output == lines + Self.line("X1", 1, "X1"))
    }

    @Test("in the terminal each scenario has a heading")
    func headings() {
        let first = Self.run("play X1").output
        let second = Self.run("play X5").output
        #expect(Self.run("play X1 X5").output == "X1, line 1\n\n\(first)\nX5, line 1\n\n\(second)\n")
    }

    @Test("several scenarios are drawn below one another, each with its title")
    func pictures() throws {
        let picture = TemporaryFile()
        #expect(Self.run("play X1 X5 --svg \(picture.path)").status == 0)
        let svg = contents(of: picture.path)
        #expect(svg.contains(">X1, line 1</text>") && svg.contains(">X5, line 1</text>"))
        #expect(svg.components(separatedBy: "<svg").count == 2)
    }

    @Test("a result is printed before the next scenario is given")
    func asTheyCome() {
        let played = Self.shell(
            """
            timeout 60 bash -c 'coproc { \(Self.program) play --format json; }
            for second in 1 2 3; do
                echo "{\\"duration\\":$second}" >&${COPROC[1]}; read -r line <&${COPROC[0]}; echo "$line"
            done'
            """)
        let lines = (1...3).map {
            "{\"input\":\"standard input\",\"line\":\($0),\"events\":[{\"t\":\($0).0,\"event\":\"end\"}]}\n"
        }
        #expect(played.output == lines.joined())
    }

    @Test("hundreds of random scenarios print in order what each does, and the same bytes again")
    func many() throws {
        let scenarios = (0..<300 as Range<UInt64>).map { RandomScenario.make(seed: $0) }
        let file = TemporaryFile(scenarios.map(RandomScenario.describe).joined(separator: "\n"))
        let played = Self.run("play --format json < \(file.path)")
        let events = played.output.split(separator: "\n").map { $0.drop { $0 != "[" } }
        #expect(
            events
                == scenarios.map { scenario in
                    "[" + ScenarioPlayer(scenario).play().map(\.json).joined(separator: ",") + "]}"
                }.map { $0[...] })
        #expect(Self.run("play --format json < \(file.path)") == played)
    }

    // MARK: Faults

    @Test("a faulty scenario is reported with file and line, others are played, the first fault sets the status")
    func faults() throws {
        let file = TemporaryFile("{\"duration\":1}\n{\"duration\":x}\n{\"duration\":-1}\n{\"duration\":4}\n")
        let played = Self.run("play \(file.path) /nowhere X1 --format json")
        let lines = [1, 4].map {
            "{\"input\":\"\(file.path)\",\"line\":\($0),\"events\":[{\"t\":\($0).0,\"event\":\"end\"}]}\n"
        }
        #expect(played.output == lines.joined() + Self.line("X1", 1, "X1"))
        #expect(
            played.errors == """
                \(file.path): line 2, column 13: expected a value
                \(file.path): line 3, duration: must not be negative
                /nowhere: cannot be read

                """)
        #expect(played.status == 65)
        #expect(Self.run("play /nowhere \(file.path)").status == 66)
    }

    @Test("an unreadable file or an unknown scenario is refused", arguments: ["/nowhere", "/", "X7", "X99"])
    func unreadable(file: String) {
        let played = Self.run("play \(file)")
        #expect(played == Outcome(output: "", errors: "\(file): cannot be read\n", status: 66))
    }

    @Test("an input without a scenario is malformed")
    func empty() {
        let errors = "standard input: line 1, column 1: expected a value, but the file ends\n"
        #expect(Self.run("play", input: "") == Outcome(output: "", errors: errors, status: 65))
    }

    @Test("a file with one malformed scenario prints one line", arguments: ["text", "json"])
    func aloneMalformed(format: String) throws {
        let file = TemporaryFile("{ \"duration\": 1,\n  \"timers\": [\n    { \"name\" \"T\" }\n  ]\n}\n")
        let errors = "\(file.path): line 1, broken at line 3, column 14: expected ':' after the key\n"
        #expect(
            Self.run("play \(file.path) --format \(format)") == Outcome(output: "", errors: errors, status: 65))
    }

    // MARK: Running the command

    struct Outcome: Equatable {
        var output: String
        var errors: String
        var status: Int32
    }

    private static let program = pathOfProgram("experiments")

    /// Returns the line of a built-in scenario among several.
    private static func line(_ input: String, _ line: Int, _ name: String) -> String {
        let events = run("play \(name) --format json").output.split(separator: "\n").joined(separator: ",")
        return "{\"input\":\"\(input)\",\"line\":\(line),\"events\":[\(events)]}\n"
    }

    static func run(_ arguments: String, input: String = "") -> Outcome {
        let redirected = arguments.contains("<") || arguments.contains("|")
        if redirected { return shell("\(program) \(arguments)") }
        let file = TemporaryFile(input)
        defer { withExtendedLifetime(file) {} }
        return shell("\(program) \(arguments) < \(file.path)")
    }

    private static func shell(_ command: String) -> Outcome {
        let errors = TemporaryFile()
        guard let stream = popen("{ \(command)\n} 2> \(errors.path)", "r") else {
            return Outcome(output: "", errors: "cannot run \(command)", status: -1)
        }
        var output: [UInt8] = []
        while case let byte = fgetc(stream), byte != EOF { output.append(UInt8(byte)) }
        // The status of the command is in the upper byte of the shell's status.
        let status = pclose(stream) >> 8
        return Outcome(
            output: String(decoding: output, as: UTF8.self), errors: contents(of: errors.path), status: status)
    }
}
