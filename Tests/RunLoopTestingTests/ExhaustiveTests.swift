import RunLoopExploration
import RunLoopKit
import RunLoopSimulation
import RunLoopTesting
import TestSupport
import Testing

private actor Account {
    private var balance = 100
    private let checksTwice: Bool
    nonisolated let lowest = Counter()

    init(checkingTwice checksTwice: Bool) {
        self.checksTwice = checksTwice
    }

    func withdraw(_ amount: Int) async {
        guard balance >= amount else { return }
        await Task.yield()
        if !checksTwice || balance >= amount { balance -= amount }
        if balance < 0 { lowest.add(balance) }
    }
}

private func transfer(checkingTwice: Bool) -> @Sendable (Simulation) throws -> Void {
    { simulation in
        let account = Account(checkingTwice: checkingTwice)
        for _ in 0..<2 { Task { await account.withdraw(80) } }
        simulation.runUntilIdle()
        #expect(account.lowest.value >= 0)
    }
}

@Suite("All schedules with some departures, in a test")
struct ExhaustiveTests {
    @Test("a right program passes all")
    func passes() async {
        await explore(.exhaustive(departures: 3), transfer(checkingTwice: true))
    }

    @Test("an expectation that a schedule does not meet is the test's issue")
    func fails() async {
        await withKnownIssue {
            await explore(.exhaustive(departures: 2), transfer(checkingTwice: false))
        } matching: { issue in
            issue.severity == .error && issue.comments.contains { $0.rawValue.contains("account.lowest.value → -60") }
        }
    }

    @Test("a schedule that traps is the test's issue, too")
    func traps() async {
        await withKnownIssue {
            await explore(.exhaustive(departures: 2)) { simulation in
                let happened = (0..<6).filter { simulation.mayHappen("\($0)") }
                precondition(happened != [1, 4], "one and four")
            }
        } matching: { issue in
            issue.severity == .error
                && issue.comments.contains {
                    $0.rawValue.contains("one and four") && $0.rawValue.contains("0:1@0=1;4@0=1")
                }
        }
    }

    @Test("a bound that is not reached is a warning")
    func incomplete() async {
        await withKnownIssue {
            let exploration = ExhaustiveExploration(departures: 2, schedules: 3)
            await explore(exploration, transfer(checkingTwice: true))
        } matching: { issue in
            issue.severity == .warning
                && issue.comments.contains { $0.rawValue.contains("have passed, and others were not tried") }
        }
    }
}
