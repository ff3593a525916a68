// Swift Testing has no library that can be linked statically.
#if canImport(Testing)
internal import Glibc
@_spi(Ports) internal import RunLoopCore
@_spi(Ports) internal import RunLoopSimulation
public import Testing

/// A trait that adds pictures of simulations to the issues of a test. Use ``Testing/Trait/simulated``. A value and
/// `Sendable`.
public struct SimulationTrait: TestTrait, SuiteTrait, TestScoping {
    /// Always `true`: the trait applies to the tests of a suite and of its nested suites.
    public var isRecursive: Bool { true }

    /// Runs a test, and adds pictures of its simulations to its issues.
    public func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        let witness = Witness()
        let explained = Locked<[ObjectIdentifier]>([])
        let trait = IssueHandlingTrait.compactMapIssues { issue in
            guard let simulation = Simulation.ofThread ?? witness.latest.withLock(\.self) else { return issue }
            let isFirst = explained.withLock { explained in
                defer { explained.append(ObjectIdentifier(simulation)) }
                return !explained.contains(ObjectIdentifier(simulation))
            }
            var issue = issue
            issue.comments.append(Comment(rawValue: simulation.explanation(isFirst: isFirst)))
            return issue
        }
        try await Witness.$current.withValue(witness) {
            try await trait.provideScope(for: test, testCase: testCase) {
                try await function()
                for failure in witness.hostFailures.withLock(\.self) {
                    Issue.record(Comment(rawValue: "\(failure)"), sourceLocation: test.sourceLocation)
                }
            }
        }
    }
}

extension Trait where Self == SimulationTrait {
    /// Adds the `picture` of a simulation to issues recorded in or after it: its seed, the time, and the last events,
    /// including fires of timers. If no handler recorded the issue, the standing of the simulation follows. Later
    /// issues of the same simulation have only the seed and the time.
    ///
    /// ```swift
    /// @Suite("The store", .simulated) struct StoreTests { … }
    /// ```
    ///
    /// An error thrown by the program of a host is an issue, unless the host may fail.
    ///
    /// If a test has several simulations, the picture shows the calling thread's, or else the most recent one.
    public static var simulated: Self { SimulationTrait() }
}

extension Simulation {
    fileprivate func explanation(isFirst: Bool) -> String {
        guard isFirst else { return "seed \(seed), at \(now)" }
        // Code not written for simulations may depend on the order of dictionaries.
        let hasOpenOrder = capturesExecutors && getenv("SWIFT_DETERMINISTIC_HASHING") == nil
        let order = "dictionaries have another order in each process; SWIFT_DETERMINISTIC_HASHING=1 fixes it"
        // In a handler the simulation does not rest yet, and a simulation that is over has no standing.
        let rest = Simulation.ofThread === self && loop.currentMode == nil ? "\n\(standing)" : ""
        return picture + rest + (hasOpenOrder ? "\n" + order : "")
    }
}
#endif
