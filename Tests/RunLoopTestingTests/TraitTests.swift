import RunLoopKit
@_spi(Ports) import RunLoopSimulation
import RunLoopTesting
import TestSupport
import Testing

/// The messages of the issues that tests record on purpose.
private let told = Log<String>()

extension Trait where Self == IssueHandlingTrait {
    /// Keeps the messages of issues, and discards the issues.
    fileprivate static var intercepted: Self {
        .compactMapIssues { issue in
            told.append(issue.comments.map(\.rawValue).joined(separator: "\n"))
            return nil
        }
    }
}

@Suite("Reports of a test that fails in a simulation", .serialized)
struct TraitTests {
    @Test("a failure in a handler or between runs reports the seed and the picture, once", .intercepted, .simulated)
    func inside() {
        withSimulation(seed: 42) { simulation in
            Timer.scheduledTimer(withTimeInterval: .seconds(2), repeats: true) { timer in
                if simulation.now.nanoseconds == 4_000_000_000 { Issue.record("late") }
            }.name = "T"
            simulation.advance(by: .seconds(7))
            Issue.record("later")
        }
        withSimulation(seed: 43) { simulation in
            simulation.loop.add(CustomSource(), forMode: .default)
            simulation.note("x")
            Issue.record("at rest")
        }
        Issue.record("over")
    }

    @Test("without a simulation, an issue has no more text", .intercepted, .simulated)
    func outside() {
        Issue.record("plain")
    }

    @Test("a host that fails without an issue of the test is an issue", .intercepted, .simulated)
    func failure() {
        withSimulation { $0.noteFailure(of: "server", CancellationError()) }
    }

    @Test("with captured executors a report also warns that the order of dictionaries varies", .intercepted, .simulated)
    func order() {
        withSimulation(seed: 44) { simulation in
            simulation.captureExecutors()
            Issue.record("in any order")
        }
    }

    @Test("the reports are exact")
    func said() {
        let file = "RunLoopTestingTests/TraitTests.swift"
        #expect(
            told.entries == [
                """
                late
                seed 42, at 4.000000000
                       time  main
                2.000000000  ●     timer "T" (\(file):25)
                4.000000000  ●     timer "T" (\(file):25)
                """, "later\nseed 42, at 7.000000000",
                """
                at rest
                seed 43, at 0.000000000
                       time  main
                0.000000000  ●     x
                stuck:
                  main has waited since 0.000000000 for source (\(file):32) in default
                """, "over\nseed 43, at 0.000000000", "plain",
                """
                host "server" failed at 0.000000000: CancellationError()
                seed 0, at 0.000000000
                nothing has happened
                """,
                """
                in any order
                seed 44, at 0.000000000
                nothing has happened
                done
                dictionaries have another order in each process; SWIFT_DETERMINISTIC_HASHING=1 fixes it
                """,
            ])
    }
}
