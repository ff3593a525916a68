import RunLoopKit
import RunLoopUnix
import TestSupport
import Testing

/// Tests of this program, run again with environment variables.
@Suite("Stepping through the schedule of a test")
struct SteppingTests {
    private let directory = TemporaryDirectory()

    /// - Returns: the end of the test program, and the lines between the tests' own.
    private func run(
        _ test: String, _ variable: String, _ token: String, commands: String = ""
    ) async throws -> (end: ChildProcess.ExitStatus, lines: [Substring]) {
        let output = directory["output"]
        let script = #"printf '%b' "$1" | "$0" --testing-library swift-testing --filter "$2" > "$3" 2>/dev/null"#
        let end = try await withLoop { _ in
            let child = try ChildProcess.spawn(
                .path("/bin/sh"), arguments: ["-c", script, CommandLine.arguments[0], commands, test, output],
                environment: .updating([variable: token]))
            return try await child.exit()
        }
        return (end, Array(contents(of: output).split(separator: "\n").drop { !$0.hasPrefix(token) }))
    }

    @Test("commands of a pipe are answered, and the end of the pipe ends it")
    func pipe() async throws {
        let (end, lines) = try await run(
            "ExploreTests/finds", "RUNLOOP_STEP", "0:main.1@0>main.2", commands: #"s\nd 0\nhello\nt\n"#)
        #expect(end == .exited(0))
        #expect(lines.first == "0:main.1@0>main.2  the run has passed")
        let place = try #require(lines.firstIndex { $0.hasSuffix("which task continues? main.1@0") })
        #expect(lines[(place + 1)...].prefix(2) == ["    0 main.1 (usual)", "  ▶ 1 main.2"])
        #expect(lines[place + 3].hasPrefix("0:  Expectation failed: "))
        #expect(lines.contains("no command is \"hello\"; ? lists them") && lines.contains("0:"))
    }

    @Test("the test fails as the last schedule does", arguments: [("0:", 0), ("0:main.1@0>main.2", 1)])
    func end(token: String, status: Int32) async throws {
        // The test is expected to fail.
        let (end, _) = try await run("ExhaustiveTests/fails", "RUNLOOP_STEP", token)
        #expect(end == .exited(status))
    }

    @Test("one schedule of an exhaustive exploration is replayed", arguments: [("0:", 0), ("0;", 1)])
    func exhaustive(token: String, status: Int32) async throws {
        let (end, _) = try await run("ExhaustiveTests/passes", "RUNLOOP_REPLAY", token)
        #expect(end == .exited(status))
        // Not all schedules are tried, but there is no warning about the others.
        let (other, _) = try await run("ExhaustiveTests/incomplete", "RUNLOOP_REPLAY", token)
        #expect(other == .exited(1))
    }

    @Test("a malformed token is the test's issue")
    func malformed() async throws {
        let (end, lines) = try await run("ExploreTests/loop", "RUNLOOP_STEP", "0;")
        #expect(end == .exited(1) && !lines.contains { $0.contains("lists the commands") })
    }

    @Test("a trap is stepped to")
    func trap() async throws {
        let (end, lines) = try await run("ExploreTests/trapOfOne", "RUNLOOP_STEP", "0:", commands: #"q\nf\nq\nq\n"#)
        #expect(end == .exited(0))
        #expect(lines.count { $0.contains("duty 2 is impossible") } >= 1, "\(lines)")
    }
}
