internal import CShims
@_spi(Ports) internal import RunLoopCore
@_spi(Ports) internal import RunLoopSimulation
internal import Synchronization

/// A simulated world with Swift's default executor and the main actor: the world of the test's own threads, or of a
/// host's process, which has its own main thread.
final class Capture: Sendable {
    let simulation: Simulation
    private let world: any World
    /// The executor of the world's main loop.
    private let main: RunLoop.Executor
    /// Runs the jobs of the default executor or, if it has a width, only those that wait for a time. Made for the first
    /// job.
    private let executor = Locked<RunLoop.Executor?>(nil)
    /// The threads of a default executor with a width.
    private let pool: Pool?

    private init(_ simulation: Simulation, in world: any World, _ main: RunLoop.Executor) {
        (self.simulation, self.world, self.main) = (simulation, world, main)
        pool = simulation.executorWidth.map { Pool(ofWidth: $0, in: world, simulation) }
        Self.count.add(1, ordering: .relaxed)
    }

    deinit {
        Self.count.subtract(1, ordering: .relaxed)
        // By identity: a weak reference that is read under the lock may be the last one, and this deinit would run again.
        let own = ObjectIdentifier(self)
        Self.homes.withLock { homes in homes = homes.filter { $0.value.identity != own } }
    }

    private struct Home {
        weak var capture: Capture?
        let identity: ObjectIdentifier

        init(_ capture: Capture) {
            (self.capture, identity) = (capture, ObjectIdentifier(capture))
        }
    }

    /// The capture in which each task has run, by the task's number.
    private static let homes = Locked<[Int: Home]>([:])
    private static let count = Atomic(0)

    private func remember(_ job: UnownedJob) {
        if let number = job.taskNumber { Self.homes.withLock { $0[number] = Home(self) } }
    }

    /// Reports to the simulation that the calling thread, which is outside of it, resumes one of its tasks.
    static func noteDeparture(of job: UnownedJob) {
        guard count.load(ordering: .relaxed) > 0, let number = job.taskNumber else { return }
        let capture = homes.withLock { $0.removeValue(forKey: number)?.capture }
        capture?.simulation.noteDeparture(of: job)
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

    /// The stand-in for the default executor.
    private var standIn: RunLoop.Executor {
        if let executor = executor.withLock(\.self) { return executor }
        let thread = LoopThread(name: "default executor", in: world, isService: true) {
            $0.add(CustomSource(), forMode: .default)
        }
        let made = thread.remote.executor()
        executor.withLock { $0 = made }
        return made
    }

    /// Takes a job of the default executor; `false` if the simulation is over.
    func take(_ job: UnownedJob) -> Bool {
        remember(job)
        if rlk_take_step() != 0, let rest = simulation.restAfterSteps() { return take(job, after: rest) }
        return pool?.take(job) ?? standIn.standIn(for: job)
    }

    /// Postpones a job of a task that may run forever; `false` if the task need not rest, or if the simulation is over.
    func rest(_ job: UnownedJob) -> Bool {
        guard let rest = simulation.restAfterSteps() else { return false }
        return take(job, after: rest)
    }

    /// - Returns: `false` if the simulation is over.
    func takeForMainActor(_ job: UnownedJob) -> Bool {
        remember(job)
        if rlk_take_step() != 0, let rest = simulation.restAfterSteps() {
            return postpone(job, by: rest) { [self] in takeForMainActor($0) }
        }
        return main.standInForMainActor(for: job)
    }

    /// Takes a job that ends the sleep of a task; `false` if the simulation is over.
    func take(_ job: UnownedJob, after delay: Duration) -> Bool { postpone(job, by: delay) { [self] in take($0) } }

    private func postpone(
        _ job: UnownedJob, by delay: Duration, to take: @escaping @Sendable (UnownedJob) -> Bool
    ) -> Bool {
        let date = simulation.now + max(delay, .zero)
        let sleeper = Sleeper(job)
        let isTaken = standIn.remote.perform { loop in loop.perform(at: date) { sleeper.wake(take) } }
        // Leaves the job to the caller.
        if !isTaken { _ = sleeper.take() }
        return isTaken
    }

    var isOnMainThread: Bool { main.remote.isCurrent }
}

/// The job that ends a sleep. If its loop ends first, another executor runs the job.
private final class Sleeper: Sendable {
    private let job: Locked<UnownedJob?>

    init(_ job: UnownedJob) {
        self.job = Locked(job)
    }

    deinit {
        if let job = take() { Router.runElsewhere(job) }
    }

    func take() -> UnownedJob? { job.withLock { $0.take() } }

    func wake(_ executor: (UnownedJob) -> Bool) {
        if let job = take(), !executor(job) { Router.runElsewhere(job) }
    }
}
