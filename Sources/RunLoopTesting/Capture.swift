internal import RunLoopCore
internal import RunLoopSimulation

/// A simulation that the default executor is a part of.
struct Capture: Sendable {
    let simulation: Simulation
    /// Runs what the default executor would.
    private let executor: RunLoop.Executor

    init(simulation: Simulation, thread: LoopThread) {
        self.simulation = simulation
        executor = thread.remote.executor()
    }

    static let current = WorldLocal<Capture?> { _ in nil }

    /// That of the calling thread.
    static var ofThread: Capture? {
        guard let loop = RunLoop.installed, loop.isVirtual else { return nil }
        return current[loop.world]
    }

    /// - Returns: `false` if the simulation is over.
    func take(_ job: UnownedJob) -> Bool { executor.standIn(for: job) }
}
