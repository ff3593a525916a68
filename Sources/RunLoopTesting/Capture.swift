internal import RunLoopCore
internal import RunLoopSimulation

/// A simulation that Swift's default executor and the main actor are parts of.
final class Capture: Sendable {
    let simulation: Simulation
    private let world: any World
    /// Of the simulation's main loop.
    private let main: RunLoop.Executor
    /// Runs what the default executor would; made for the first job.
    private let executor = Locked<RunLoop.Executor?>(nil)

    init(_ simulation: Simulation) {
        self.simulation = simulation
        world = simulation.loop.world
        main = simulation.loop.remote.executor()
    }

    static let current = WorldLocal<Capture?> { _ in nil }

    /// That of the calling thread.
    static var ofThread: Capture? {
        guard let loop = RunLoop.installed, loop.isVirtual else { return nil }
        return current[loop.world]
    }

    /// Takes a job of the default executor.
    ///
    /// - Returns: `false` if the simulation is over.
    func take(_ job: UnownedJob) -> Bool {
        let executor =
            executor.withLock(\.self)
            ?? {
                let thread = LoopThread(name: "default executor", in: world, isService: true) {
                    $0.add(CustomSource(), forMode: .default)
                }
                let executor = thread.remote.executor()
                self.executor.withLock { $0 = executor }
                return executor
            }()
        return executor.standIn(for: job)
    }

    /// Takes a job of the main actor.
    ///
    /// - Returns: `false` if the simulation is over.
    func takeForMainActor(_ job: UnownedJob) -> Bool { main.standInForMainActor(for: job) }

    /// Whether the calling thread is the one of the main actor.
    var isOnMainThread: Bool { main.remote.isCurrent }
}
