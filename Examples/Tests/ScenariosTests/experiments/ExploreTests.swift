import ExampleTestSupport
import Glibc
import RunLoopExploration
import Testing

@testable import Scenarios

@Suite("experiments explore")
struct ExploreTests {
    /// The contents of the page *Find the interleaving*: the scenario, and the printed lines.
    private static let page: (scenario: String, command: String, output: [Substring]) = {
        let root = #filePath.split(separator: "/", omittingEmptySubsequences: false).dropLast(5).joined(separator: "/")
        let text = contents(of: root + "/Sources/RunLoopExploration/RunLoopExploration.docc/FindTheInterleaving.md")
        func block(_ mark: String) -> Substring {
            guard let start = text.firstRange(of: "\n```\(mark)\n") else { return "" }
            let rest = text[start.upperBound...]
            return rest[..<(rest.firstRange(of: "\n```")?.lowerBound ?? rest.endIndex)]
        }
        let lines = block("text").split(separator: "\n", omittingEmptySubsequences: false)
        return (String(block("json")), String(lines.first ?? ""), Array(lines.dropFirst()))
    }()

    @Test("the page shows the printed output")
    func page() throws {
        let file = TemporaryFile(Self.page.scenario)
        let command = Self.page.command
        let prefix = "$ experiments explore timers.json"
        try #require(command.hasPrefix(prefix))
        let explored = PlayTests.run("explore \(file.path)" + command.dropFirst(prefix.count))
        let printed = explored.output.split(separator: "\n", omittingEmptySubsequences: false)
        #expect(Array(printed.prefix(Self.page.output.count)) == Self.page.output)
        #expect(explored.status == 1)

        // The last line has the command that replays the finding.
        let replay = try #require(printed.dropLast().last?.split(separator: "--").last)
        let replayed = PlayTests.run("explore \(file.path) --\(replay)")
        #expect(replayed.status == 0 && !replayed.output.isEmpty && explored.output.contains(replayed.output))
    }

    @Test("no drag makes a timer of the common modes late")
    func common() {
        let scenario = #"""
            {"duration": 12, "commonModes": ["tracking"], "timers": [
                {"name": "T", "interval": 2, "repeats": true, "modes": ["common"]}]}
            """#
        let file = TemporaryFile(scenario)
        let explored = PlayTests.run("explore \(file.path) --late 0.1 --drags 3 --schedules 200")
        #expect(explored.output == "no timer is more than 0.1 s late in 200 schedules\n" && explored.status == 0)
    }

    @Test("a file that is missing or malformed, and options that make no sense, say so")
    func refused() {
        #expect(PlayTests.run("explore /nowhere/timers.json").status == 66)
        #expect(PlayTests.run("explore -", input: "{").status == 65)
        for options in ["--late -1", "--lasting 0", "--drags 0", "--schedules 0", "--replay x"] {
            let explored = PlayTests.run("explore X5 \(options)")
            #expect(explored.status == 64 && explored.errors.contains(options.split(separator: " ")[0]), "\(options)")
        }
    }
}

@Suite("experiments debug")
struct DebugTests {
    /// A scenario whose timer has an apostrophe in its name, and so in its token.
    private let file = TemporaryFile(
        #"""
        {"duration": 12, "timers": [
            {"name": "A's", "interval": 1, "repeats": true, "modes": ["default", "tracking"]},
            {"name": "B", "interval": 3.5, "repeats": true, "modes": ["default"]}]}
        """#)

    private func run(_ command: some StringProtocol, input: String = "") -> PlayTests.Outcome {
        PlayTests.run(String(command.trimmingPrefix("experiments ")), input: input)
    }

    @Test("the command that explore prints steps through the schedule, and so is the token quoted that it prints")
    func printed() throws {
        let explored = run("explore \(file.path) --late 0.9 --mode tracking")
        let lines = explored.output.split(separator: "\n")
        let command = try #require(lines.dropLast().last?.split(separator: ": ", maxSplits: 1).last)
        #expect(command.hasPrefix("experiments debug ") && command.contains(" --late 0.9 '0:main.A'\\''s: "))
        let fault = try #require(lines.first?.split(separator: ", found").first)
        let stepped = run(command, input: "x\nf\n")
        #expect(stepped.status == 0 && stepped.errors.isEmpty)
        let answers = stepped.output.split(separator: "\n")
        #expect(
            answers.first?.hasSuffix("  \(fault)") == true && answers.last?.hasSuffix("  the end: \(fault)") == true)
        #expect(answers.contains("  ▶ 1 main.A's: a drag begins"))

        let replay = try #require(lines.last?.split(separator: "again: ").last)
        let replayed = run("explore \(file.path) --late 0.9 \(replay)")
        #expect(replayed.status == 0 && explored.output.contains(replayed.output) && !replayed.output.isEmpty)
    }

    @Test("a departure makes a timer late, and a token of another scenario is reported")
    func departs() {
        let lines = run("debug X5 0:main.Z:@4=1", input: "s\nd 1\nt").output.split(separator: "\n")
        #expect(
            lines.dropFirst().first?.hasPrefix("departures that have not happened: 1 of 1, first main.Z:@4=1; ") == true
        )
        #expect(lines.last?.hasSuffix("a drag begins@0=1") == true, "\(lines)")
    }

    @Test("a malformed token, and commands in place of a scenario, are refused")
    func refused() {
        let malformed = run("debug X5 0")
        #expect(malformed.status == 64 && malformed.errors.contains("debug takes a token"))
        #expect(run("debug - 0:").status == 64)
    }
}

@Suite("Exploration of scenarios")
struct ScenarioExplorerTests {
    /// Makes an explorer of a one-shot that is due between two fires of another timer, and is held up while the user
    /// drags.
    private func explorer(latest: Int64) throws -> ScenarioExplorer {
        let text = #"""
            {"duration": 10, "timers": [
                {"name": "A", "interval": 1, "repeats": true, "modes": ["default", "tracking"]},
                {"name": "B", "first": 4.5, "interval": 100, "repeats": false, "modes": ["default"]}]}
            """#
        let scenario = try read(text)
        return ScenarioExplorer(scenario, mode: "tracking", lasting: 1_000_000_000, atMost: 1, latest: latest)
    }

    @Test("the drag that makes a timer late is found, and its token says which")
    func late() throws {
        let explorer = try explorer(latest: 400_000_000)
        guard case .failed(let finding) = explorer.explore(Exploration(schedules: 500)) else {
            Issue.record("no drag was found")
            return
        }
        #expect(finding.fault.description == "timer B fires at 5.0 s, and was due at 4.5 s")
        #expect(finding.token.departures.map(\.place) == ["main.A: a drag begins"])
        let fires = explorer.replay(finding.token).filter { event in
            if case .fire(name: "B", _, _, _, _, manual: _) = event.kind { true } else { false }
        }
        #expect(fires.map(\.t) == [5_000_000_000])
    }

    @Test("a timer may be as late as is allowed")
    func allowed() throws {
        // A drag of a second that begins with a fire of A, or of B.
        guard case .passed(500) = try explorer(latest: 500_000_000).explore(Exploration(schedules: 500)) else {
            Issue.record("a drag was found")
            return
        }
    }
}
