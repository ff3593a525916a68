internal import RunLoopCore

/// A test that wants to know the events of its simulations.
package final class Witness: Sendable {
    /// The witness of the calling task.
    @TaskLocal package static var current: Witness?

    private let seen = Locked<Simulation?>(nil)

    package init() {}

    func see(_ simulation: Simulation) {
        seen.withLock { $0 = simulation }
    }

    private let failures = Locked<[Simulation.HostFailure]>([])

    func see(_ failures: [Simulation.HostFailure]) {
        self.failures.withLock { $0 += failures }
    }

    /// The hosts that failed but had to succeed, of all simulations that are over.
    package var hostFailures: [Simulation.HostFailure] { failures.withLock(\.self) }

    /// The most recent simulation; it may be over.
    package var latest: Simulation? { seen.withLock(\.self) }
}
