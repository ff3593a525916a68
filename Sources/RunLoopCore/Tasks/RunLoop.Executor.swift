extension RunLoop {
    /// Runs actors and tasks on a loop's thread, while the loop runs in certain modes.
    ///
    /// ```swift
    /// actor Cache {
    ///     let home: RunLoop.Executor
    ///     nonisolated var unownedExecutor: UnownedSerialExecutor { home.serial.asUnownedSerialExecutor() }
    /// }
    /// let home = loop.remote.executor()
    /// Task(executorPreference: home.task) { await cache.load() }
    /// ```
    ///
    /// The part of a task between two suspensions is a *job*. Jobs run in order of arrival, next to the blocks of
    /// `Remote.perform(inModes:_:)`. A job for modes in which the loop does not run waits, as a timer does. After 1,024
    /// jobs, or about 5 ms, timers and sources have their turn. A job that runs the loop holds back the other jobs of
    /// its executor until that run has ended, because they rely on running one at a time.
    ///
    /// In a callback of the loop, on its thread, `assumeIsolated` of an actor that lives here holds, so a timer may
    /// access the state of the actor directly.
    ///
    /// Waiting jobs keep the loop's run from finishing; an executor without any does not. When the loop ends, waiting
    /// jobs still run, regardless of their modes, and so do jobs that they enqueue, up to 10,000 one after another. A
    /// job cannot be refused: a job that comes after the end traps, with a sentence that names the loop and the task.
    ///
    /// Enqueuing is O(1) and allocates nothing. `Sendable`; any thread.
    ///
    /// Source: Swift Evolution SE-0392 and SE-0417.
    public final class Executor: Sendable {
        /// The executor of actors: the value of their `unownedExecutor`.
        public let serial: any SerialExecutor

        /// The executor for a task's preference: `Task(executorPreference:)`, `withTaskExecutorPreference`.
        public let task: any TaskExecutor

        /// The modes in which jobs run.
        public let modes: Modes

        /// A handle by which any thread may send requests to the loop.
        public var remote: Remote { jobs.remote }

        let jobs: JobReceiver
        /// The unused sleeps for clocks of these modes.
        let sleeps = SleepPool()
        /// The executor of the loop's own tasks. When the loop has ended, its remaining tasks, which have been
        /// cancelled, continue elsewhere: they hold nothing of the loop any more.
        let own: any TaskExecutor

        fileprivate init(_ mailbox: Mailbox<RunLoop>, modes: Modes, origin: Origin) {
            self.modes = modes
            jobs = JobReceiver(Remote(mailbox), JobQueue(modes: modes, origin: origin))
            // Several objects, because a job must be run with the executor by which it came: with another it is
            // enqueued once more.
            let (task, own) = (LoopTaskExecutor(jobs), OwnTaskExecutor(jobs))
            jobs.queue.executors = (
                jobs.asUnownedSerialExecutor(), task.asUnownedTaskExecutor(), own.asUnownedTaskExecutor()
            )
            (serial, self.task, self.own) = (jobs, task, own)
            jobs.executor = self
        }

        /// Runs a job in place of Swift's default executor, under that executor's name. Any thread.
        ///
        /// - Returns: `false` if the loop has ended.
        @_spi(Ports) public func standIn(for job: UnownedJob) -> Bool { jobs.accepts(job, by: .standIn) }

        /// Runs a job in place of the main actor's executor. Any thread.
        ///
        /// - Returns: `false` if the loop has ended.
        @_spi(Ports) public func standInForMainActor(for job: UnownedJob) -> Bool { jobs.accepts(job, by: .mainActor) }
    }
}

extension RunLoop.Executor: JobExecutor {
    func take(_ job: UnownedJob, by way: JobWay, in loop: RunLoop) {
        jobs.queue.add(job, by: way, in: loop)
    }

    func runWaiting(in loop: RunLoop) {
        jobs.queue.runWaiting(in: loop)
    }

    func takeWaiting() -> [(job: UnownedJob, way: JobWay)] { jobs.queue.takeWaiting() }

    func refuse(_ job: UnownedJob, by way: JobWay) {
        switch way {
        case .own: own.enqueue(job)
        case .mainActor: MainActor.shared.enqueue(job)
        default: jobs.enqueue(job, by: way)
        }
    }

    var isIdle: Bool { jobs.queue.isIdle }

    func end() {
        sleeps.close()
    }
}

extension RunLoop.Remote {
    /// Returns the executor of the loop for these modes: the same object each time, so that jobs of actors that obtain
    /// it separately run one at a time, and calls from one to the other need no hop. Any thread, O(1).
    ///
    /// - Parameter modes: the modes in which its jobs run. The default is the common modes.
    public func executor(
        inModes modes: RunLoop.Modes = .common, file: StaticString = #fileID, line: UInt32 = #line
    ) -> RunLoop.Executor {
        require(!modes.isEmpty, "an executor needs a mode; without any, its jobs would never run")
        let executor = mailbox.executor(for: modes) {
            RunLoop.Executor(mailbox, modes: modes, origin: RunLoop.Origin(file: file, line: line))
        }
        guard let executor = executor as? RunLoop.Executor else { fatalError("a loop has executors of one kind") }
        return executor
    }
}

/// Takes jobs from any thread. Jobs enqueued through `SerialExecutor` are jobs of actors.
final class JobReceiver: SerialExecutor {
    let remote: RunLoop.Remote
    // Unsafe, but only the loop's thread accesses its contents.
    nonisolated(unsafe) let queue: RunLoop.JobQueue

    init(_ remote: RunLoop.Remote, _ queue: RunLoop.JobQueue) {
        self.remote = remote
        self.queue = queue
    }

    /// The executor, which the mailbox's table keeps as long as jobs are taken.
    // Unsafe, but set once, before anything else refers to this object.
    nonisolated(unsafe) weak var executor: RunLoop.Executor?

    /// - Returns: `false` if the loop has ended.
    @inline(__always)
    func accepts(_ job: UnownedJob, by way: JobWay) -> Bool {
        if let loop = RunLoop.installedReference, loop.with({ $0.mailbox === remote.mailbox && $0.takesJobs }) {
            loop.with { queue.add(job, by: way, in: $0) }
            return true
        }
        guard let executor else { return false }
        if remote.mailbox.notesPosters { noteWaking(of: job) }
        remote.waker.tookJob(job)
        return remote.mailbox.post(.init(job: job, way: way, executor: executor))
    }

    /// Notes in the recorder of the calling thread's loop that it wakes a task of another one.
    @inline(never)
    private func noteWaking(of job: UnownedJob) {
        RunLoop.installedReference?.with { loop in
            if loop.isWatched(.effects) { loop.watchedCause(of: queue.callee(of: job)) }
        }
    }

    @inline(__always)
    func enqueue(_ job: UnownedJob, by way: JobWay) {
        guard !accepts(job, by: way) else { return }
        fatalError(
            "\(job.task) came to \(remote.mailbox.loopDescription), which has ended; "
                + "end a loop's tasks and actors before the loop ends")
    }

    func enqueue(_ job: consuming ExecutorJob) {
        enqueue(UnownedJob(job), by: .serial)
    }

    func checkIsolated() {
        require(
            remote.isCurrent,
            "code that belongs to \(remote.mailbox.loopDescription) was called on another thread; await it from there")
    }

    func isIsolatingCurrentContext() -> Bool? { remote.isCurrent }
}

private final class LoopTaskExecutor: TaskExecutor {
    private let jobs: JobReceiver

    init(_ jobs: JobReceiver) {
        self.jobs = jobs
    }

    func enqueue(_ job: consuming ExecutorJob) {
        jobs.enqueue(UnownedJob(job), by: .task)
    }
}

private final class OwnTaskExecutor: TaskExecutor {
    private let jobs: JobReceiver

    init(_ jobs: JobReceiver) {
        self.jobs = jobs
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        if !jobs.accepts(job, by: .own) { globalConcurrentExecutor.enqueue(ExecutorJob(job)) }
    }
}
