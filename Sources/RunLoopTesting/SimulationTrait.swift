internal import RunLoopCore
internal import RunLoopSimulation
public import Testing

/// Has a test say more when it fails in a simulation; made by ``Testing/Trait/simulated``. A value and `Sendable`.
public struct SimulationTrait: TestTrait, SuiteTrait, TestScoping {
    /// True: the tests of a suite have it, and those of the suites in it.
    public var isRecursive: Bool { true }

    /// Runs a test, with a picture in mind of what its simulations do.
    public func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        let witness = Witness()
        let explained = Locked<[ObjectIdentifier]>([])
        let trait = IssueHandlingTrait.compactMapIssues { issue in
            guard let simulation = Simulation.ofThread ?? witness.latest else { return issue }
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
                for failure in witness.hostFailures {
                    Issue.record(Comment(rawValue: "\(failure)"), sourceLocation: test.sourceLocation)
                }
            }
        }
    }
}

extension Trait where Self == SimulationTrait {
    /// With an issue that is recorded in a simulation, or after one, the test prints the `picture` of that simulation:
    /// its seed, the time, and what has happened last, with what timers did. If the issue was recorded in no handler, how
    /// it stands comes next. Later issues of the same simulation have the seed and the time alone.
    ///
    /// ```swift
    /// @Suite("The store", .simulated) struct StoreTests { … }
    /// ```
    ///
    /// A host whose program throws an error is an issue, unless it may fail.
    ///
    /// Of several simulations of a test, it is the one of the calling thread, or else the one that was begun last.
    public static var simulated: Self { SimulationTrait() }
}

extension Simulation {
    /// What an issue says of it.
    fileprivate func explanation(isFirst: Bool) -> String {
        guard isFirst else { return "seed \(seed), at \(now)" }
        // In a handler it does not rest yet, and when it is over it stands no more.
        return Simulation.ofThread === self && loop.currentMode == nil ? "\(picture)\n\(standing)" : picture
    }
}
