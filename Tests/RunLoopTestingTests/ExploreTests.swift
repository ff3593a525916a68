import RunLoopExploration
import RunLoopKit
import RunLoopSimulation
import RunLoopTesting
import RunLoopUnix
import TestSupport
import Testing

/// The messages of the issues that tests record on purpose.
private let told = Log<String>()

extension Trait where Self == IssueHandlingTrait {
    /// Keeps the messages of issues, and discards the issues.
    fileprivate static var intercepted: Self {
        .compactMapIssues { issue in
            told.append(issue.comments.isEmpty ? "\(issue)" : issue.comments.map(\.rawValue).joined(separator: "\n"))
            return nil
        }
    }
}

private actor Account {
    private var balance = 100
    nonisolated let lowest = Counter()

    func withdraw(_ amount: Int) async {
        guard balance >= amount else { return }
        await Task.yield()
        balance -= amount
        if balance < 0 { lowest.add(balance) }
    }
}

private func transfer(_ simulation: Simulation) {
    let account = Account()
    for _ in 0..<2 { Task { await account.withdraw(80) } }
    simulation.runUntilIdle()
    #expect(account.lowest.value >= 0)
}

/// A duty described like every other one.
private final class Duty: Sendable {
    let number: Int

    init(_ number: Int) { self.number = number }
}

@Suite("Exploration in a test", .serialized)
struct ExploreTests {
    @Test("an expectation that some schedule does not meet", .intercepted)
    func finds() async {
        await explore { transfer($0) }
    }

    @Test("a trap in another thread of a task's making", .intercepted)
    func trap() async {
        await explore { simulation in
            let count = Counter()
            Task.detached {
                await Task.yield()
                count.add()
            }
            Task.detached {
                await Task.yield()
                await Task.yield()
                await Task.yield()
                precondition(count.value == 1, "not there yet")
            }
            simulation.runUntilIdle()
        }
    }

    @Test("a trap with one of a test's arguments", .intercepted, arguments: [1, 2, 3].map(Duty.init))
    fileprivate func trapOfOne(duty: Duty) async {
        await explore(Exploration(schedules: 50)) { _ in
            precondition(duty.number != 2, "duty 2 is impossible")
        }
    }

    @Test("one schedule is replayed in this process; an invalid token is reported", .intercepted)
    func replays() {
        replay("0:", transfer)
        replay("0", transfer)
    }

    @Test("a mark that is required and never met", .intercepted)
    func required() async {
        let exploration = Exploration(schedules: 20)
        await explore(exploration, requiring: ["a coin fell", "it was heads", "it was edge"]) { simulation in
            let isHeads = simulation.mayHappen("heads")
            simulation.sometimes("a coin fell")
            RunLoop.sometimes("it was heads", if: isHeads)
            simulation.sometimes("it was edge", if: false)
        }
    }

    @Test("explorations with a test's arguments are distinguished in the other process, too", arguments: [1, 2])
    func several(number: Int) async {
        for count in 1...3 {
            await explore(Exploration(schedules: 100)) { simulation in
                let steps = Counter()
                for _ in 0..<count * number { Task { steps.add() } }
                simulation.runUntilIdle()
                #expect(steps.value == count * number)
            }
        }
    }

    @Test("explorations in a loop are distinguished in the other process, too")
    func loop() async {
        for count in 1...3 {
            await explore(Exploration(schedules: 100)) { simulation in
                let steps = Counter()
                for _ in 0..<count { Task { steps.add() } }
                simulation.runUntilIdle()
                #expect(steps.value == count)
            }
        }
    }

    @Test("tests that are repeated explore again", arguments: ["loop", "several"])
    func again(test: String) async throws {
        let arguments = ["--filter", "ExploreTests/\(test)", "--repetitions", "3"]
        try await withLoop { _ in
            let child = try ChildProcess.spawn(
                .path("/proc/self/exe"), arguments: ["--testing-library", "swift-testing"] + arguments,
                standardOutput: .null, standardError: .null)
            #expect(try await child.exit() == .exited(0))
        }
    }

    @Test("explorations are campaigns if the environment says so, each with its directory")
    func campaigns() async throws {
        let directory = TemporaryDirectory()
        let path = directory["night"]
        try await withLoop { _ in
            let child = try ChildProcess.spawn(
                .path("/proc/self/exe"),
                arguments: ["--testing-library", "swift-testing", "--filter", "ExploreTests/(loop|several|finds)"],
                environment: .updating(["RUNLOOP_CAMPAIGN": path]), standardOutput: .null, standardError: .null)
            #expect(try await child.exit() == .exited(0))
        }
        let suite = "RunLoopTestingTests-ExploreTests-"
        let names = Set(directoryEntries(path)).subtracting([".", ".."])
        #expect(names.filter { $0.hasPrefix("\(suite)loop-") } == Set((1...3).map { "\(suite)loop-\($0)" }))
        #expect(names.count { $0.hasPrefix("\(suite)several-number-") } == 6 && names.count == 10, "\(names)")
        for name in names {
            let schedules = name.contains("finds") ? 1_000 : 100
            let shard = contents(of: "\(path)/\(name)/shard-0-of-1.txt").split(separator: "\n")
            #expect(shard.contains("schedules \(schedules)"), "\(name): \(shard)")
            let findings = directoryEntries("\(path)/\(name)").filter { $0.hasPrefix("finding-") }
            #expect(findings.isEmpty != name.contains("finds"), "\(name): \(findings)")
            for finding in findings {
                let report = contents(of: "\(path)/\(name)/\(finding)")
                #expect(report.contains("\nTo step through it: RUNLOOP_STEP='"), "\(report)")
            }
        }
    }

    @Test("a failed exploration attaches the page, the token and the trace")
    func attachments() async throws {
        let directory = TemporaryDirectory()
        let path = directory.path
        try await withLoop { _ in
            let child = try ChildProcess.spawn(
                .path("/proc/self/exe"),
                arguments: [
                    "--testing-library", "swift-testing", "--filter", #"ExploreTests/finds\("#,
                    "--attachments-path", path,
                ],
                standardOutput: .null, standardError: .null)
            #expect(try await child.exit() == .exited(0))
        }
        let names = Set(directoryEntries(path)).subtracting([".", ".."])
        #expect(names == ["finding.html", "token.txt", "trace.txt"])
        let token = contents(of: directory["token.txt"]).split(separator: "\n").map(String.init)
        #expect(token.count == 1 && ScheduleToken(token[0]) != nil, "\(token)")
        let page = contents(of: directory["finding.html"])
        #expect(page.hasPrefix("<!DOCTYPE html>") && page.contains("account.lowest.value"))
        #expect(contents(of: directory["trace.txt"]).contains(" step 1"))
    }

    @Test("the failures are reported with a sentence, and with a token that fails")
    func said() throws {
        try #require(told.entries.count == 6, "\(told.entries)")
        #expect(told.entries[2].contains("duty 2 is impossible"), "\(told.entries[2])")
        #expect(told.entries[3].contains("account.lowest.value → -60"))
        #expect(told.entries[4].hasPrefix("\"0\" is not the token of a schedule; "))
        #expect(told.entries[5] == "never met in 20 schedules: it was edge")
        #expect(told.entries[0].contains("(account.lowest.value → -60) >= 0"), "\(told.entries[0])")
        let command = "' swift test --filter RunLoopTestingTests.ExploreTests/"
        #expect(told.entries[0].contains("\nTo step through it: RUNLOOP_STEP='0:"), "\(told.entries[0])")
        #expect(told.entries[0].contains(command + "finds\n") && told.entries[2].contains(command + "trapOfOne\n"))
        #expect(told.entries[1].contains("not there yet"), "\(told.entries[1])")
    }
}
