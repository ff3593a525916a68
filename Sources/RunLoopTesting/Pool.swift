@_spi(Ports) internal import RunLoopCore
@_spi(Ports) internal import RunLoopSimulation

/// The threads of a simulation that run the jobs of Swift's default executor, each thread one job at a time. A job that
/// blocks occupies its thread.
final class Pool: Sendable {
    private struct State {
        /// The jobs that wait for a thread, by priority and then by arrival.
        var jobs: [UnownedJob] = []
        /// The time when all threads became busy.
        var busySince = RunLoop.Instant(nanoseconds: 0)
        var executors: [RunLoop.Executor] = []
        /// The threads that have no job, by number.
        var free: Set<Int> = []
        /// The number of threads that have not ended.
        var living = 0
    }

    // Unowned, because every thread keeps the pool, even one that is ended while it blocks.
    private unowned let simulation: Simulation
    private let state = Locked(State())

    init(ofWidth width: Int, in world: any World, _ simulation: Simulation) {
        self.simulation = simulation
        let executors = (0..<width).map { number in
            LoopThread(name: "default executor \(number + 1)", in: world, isService: true) { [self] loop in
                let life = CustomSource()
                life.invalidationHandler = { [self] in ends(number) }
                loop.add(life, forMode: .default)
                let observer = Observer(activities: .beforeWaiting) { [self] _, _ in rests(number) }
                loop.add(observer, forMode: .default)
            }.remote.executor()
        }
        state.withLock { ($0.executors, $0.free, $0.living) = (executors, Set(0..<width), width) }
        simulation.furtherWaits.withLock { $0.append { [weak self] in self?.waits ?? [] } }
    }

    deinit {
        // All threads were blocked when the simulation ended.
        for job in state.withLock(\.jobs) { Router.runElsewhere(job) }
    }

    /// - Returns: `false` if the simulation is over.
    func take(_ job: UnownedJob) -> Bool {
        let (executor, waits) = state.withLock { state -> (RunLoop.Executor?, Bool) in
            guard let number = state.free.min() else {
                guard state.living > 0 else { return (nil, false) }
                let place = state.jobs.firstIndex { $0.priority < job.priority } ?? state.jobs.endIndex
                state.jobs.insert(job, at: place)
                return (nil, true)
            }
            state.free.remove(number)
            if state.free.isEmpty { state.busySince = simulation.now }
            return (state.executors[number], false)
        }
        if waits { simulation.jobWaits(job) }
        return waits || executor?.standIn(for: job) == true
    }

    /// Gives an idle thread the next job. Called on that thread.
    private func rests(_ number: Int) {
        let next = state.withLock { state -> (RunLoop.Executor, UnownedJob)? in
            guard !state.jobs.isEmpty else {
                state.free.insert(number)
                return nil
            }
            return (state.executors[number], state.jobs.removeFirst())
        }
        if let (executor, job) = next, !executor.standIn(for: job) { Router.runElsewhere(job) }
    }

    /// Runs the waiting jobs when a thread ends with its simulation or process, as every loop does. Called on that
    /// thread.
    private func ends(_ number: Int) {
        let (executor, jobs) = state.withLock { state in
            defer { state.jobs = [] }
            state.living -= 1
            state.free.remove(number)
            return (state.executors[number], state.jobs)
        }
        for job in jobs where !executor.standIn(for: job) { Router.runElsewhere(job) }
    }

    private var waits: [Simulation.Wait] {
        state.withLock { state in
            guard !state.jobs.isEmpty else { return [] }
            let width = state.executors.count
            let threads = width == 1 ? "its thread, which is blocked" : "one of its \(width) threads, which are blocked"
            return state.jobs.map {
                Simulation.Wait(
                    thread: "\($0.task) of the default executor", what: threads, since: state.busySince, isOfTask: true)
            }
        }
    }
}
