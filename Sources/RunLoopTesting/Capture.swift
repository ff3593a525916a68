internal import RunLoopCore
internal import RunLoopSimulation

/// A world of a simulation that includes Swift's default executor and the main actor: the world of the test's own
/// threads, or of a host's process, which has a main thread of its own.
final class Capture: Sendable {
    let simulation: Simulation
    private let world: any World
    /// The executor of the world's main loop.
    private let main: RunLoop.Executor
    /// Runs the jobs of the default executor; made for the first job.
    private let executor = Locked<RunLoop.Executor?>(nil)

    private init(_ simulation: Simulation, in world: any World, _ main: RunLoop.Executor) {
        (self.simulation, self.world, self.main) = (simulation, world, main)
    }

    private static let current = WorldLocal<Capture?> { _ in nil }

    /// The capture of the calling thread; made if its simulation captures executors.
    static var ofThread: Capture? {
        guard let loop = RunLoop.installed, loop.isVirtual else { return nil }
        if let capture = current[loop.world] { return capture }
        guard let simulation = Simulation.ofThread, simulation.capturesExecutors,
            let main = RunLoop.mainRemotes[loop.world]
        else { return nil }
        let capture = Capture(simulation, in: loop.world, main.executor())
        current.set(capture, in: loop.world)
        return capture
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

    /// Whether the calling thread is the main actor's.
    var isOnMainThread: Bool { main.remote.isCurrent }
}
