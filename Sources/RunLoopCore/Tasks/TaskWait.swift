internal import Synchronization

/// A task's wait for an event on a loop's thread.
///
/// Subclasses define the beginning of the wait and its reaction when the task is cancelled; both happen on the loop's
/// thread. The first call to end the wait resumes the task; later ones have no effect. The object serves one wait after
/// another. Waiting allocates nothing.
@_spi(Ports) open class TaskWait: SerialExecutor, @unchecked Sendable {
    // Unchecked: a task that begins to wait hands the fields below over to the loop's thread by the atomic flag.
    public let remote: RunLoop.Remote

    /// Set if a task is to be resumed.
    private let isOpen = Atomic(false)
    private let isCancelled = Atomic(false)
    /// Hands the fields below back to the task. ThreadSanitizer does not see the runtime's own way of doing so.
    private let isOver = Atomic(false)
    /// The waiting task's job.
    private var job: UnownedJob?
    /// The executor from which the job came, if that was the loop's: the task resumes there.
    private var origin: (jobs: UnownedReference<RunLoop.JobQueue>, way: JobWay)?
    private var error: (any Error)?
    private var hasBegun = false
    private var usedGate: JobGate?
    /// Indicates whether the wait can be ended. On the loop's thread.
    public final var isWaiting: Bool { isOpen.load(ordering: .relaxed) }

    /// The waiting task, at rest. On the loop's thread.
    final var waiter: UnownedJob? { isWaiting ? job : nil }

    /// Set when the task has come to rest. Before that it may be on its way through the queue of its actor.
    private var hasOpened = false
    /// Set if the wait was ended before `hasOpened`.
    private var hasEndedEarly = false
    private var isUsed = false
    /// Indicates whether a task waits: from the beginning of the wait until the task resumes. Computed, because other
    /// modules check each use of a stored property.
    public final var isTaken: Bool { isUsed }

    /// Creates a wait on the loop of `remote`. A task may wait once at a time.
    public init(_ remote: RunLoop.Remote) {
        self.remote = remote
    }

    /// Checks that a task may wait: on the loop's thread, while no other does.
    ///
    /// - Parameter what: the wait's name in errors, for example `connections`.
    /// - Throws: ``RunLoop/WaitError`` if another task waits, or if the loop has ended.
    public final nonisolated(nonsending) func admit(for what: @autoclosure () -> String) async throws {
        if remote.hasEnded { throw await remote.endErrorAfterTurn() }
        require(remote.isCurrent, RunLoop.awaitedElsewhere(what()))
        if isTaken { throw RunLoop.WaitError.alreadyWaiting(what()) }
    }

    /// Waits until ``end(throwing:)``. One task at a time.
    ///
    /// - Throws: the error that ended the wait; `CancellationError` if the task is cancelled; ``RunLoop/WaitError`` if
    ///   the loop has ended.
    public final nonisolated(nonsending) func wait() async throws {
        assert(!isUsed, "two tasks wait with one object")
        isUsed = true
        defer { isUsed = false }
        (hasOpened, hasBegun, hasEndedEarly) = (false, false, false)
        error = nil
        if let scope = TaskScope.ofRunningTask(on: remote) {
            scope.deadline?.notice()
            isCancelled.store(scope.isCancelled, ordering: .relaxed)
            assert(scope.wait == nil, "a task waits twice at a time")
            scope.wait = self
            await gate.pass()
            assert(scope.wait === self, "a task has waited for something else")
            scope.wait = nil
        } else {
            isCancelled.store(false, ordering: .relaxed)
            await passWithHandler()
        }
        _ = isOver.load(ordering: .acquiring)
        if let error { throw error }
    }

    /// - Parameter isolation: the isolation in which the task waits and resumes; a parameter because a closure within a
    ///   `nonisolated(nonsending)` function would leave it.
    private final func passWithHandler(isolation: isolated (any Actor)? = #isolation) async {
        await withTaskCancellationHandler {
            _ = isolation
            await gate.pass()
        } onCancel: {
            cancel()
        }
    }

    private final var gate: JobGate {
        if let usedGate { return usedGate }
        let gate = JobGate(self)
        usedGate = gate
        return gate
    }

    /// Takes the job of a task that has come to the gate.
    public final func enqueue(_ job: consuming ExecutorJob) {
        assert(!isWaiting, "a wait begins that has begun")
        let job = UnownedJob(job)
        self.job = job
        origin = nil
        if let jobs = remote.runningJobs, let running = jobs.with({ $0.running }), running.job == job {
            origin = (jobs, running.way)
        }
        hasOpened = true
        isOpen.store(true, ordering: .sequentiallyConsistent)
        if hasEndedEarly { return end(throwing: error) }
        // A loop that has ended has notified the waits that it knew, and not this one.
        if !ask() { end(throwing: remote.endError) }
    }

    /// Notes that the task was cancelled. Any thread.
    final func cancel() {
        isCancelled.store(true, ordering: .sequentiallyConsistent)
        _ = ask()
    }

    private final func ask() -> Bool {
        if let loop = remote.installedReference {
            loop.with { look(in: $0) }
            return true
        }
        return remote.mailbox.post(.urgent { [self] in look(in: $0) })
    }

    /// Begins or cancels the wait. A request may come late, when the object serves another wait: then there is nothing
    /// to do, or it is done earlier.
    private final func look(in loop: RunLoop) {
        assert(loop.mailbox === remote.mailbox, "a wait is looked at by another loop than its own")
        guard isOpen.load(ordering: .sequentiallyConsistent) else { return }
        if isCancelled.load(ordering: .sequentiallyConsistent) {
            if hasBegun || outlastsCancellation { cancelled(in: loop) }
            guard loop.hasEnded || !outlastsCancellation else { return }
            // The end of a loop cancels its tasks.
            end(throwing: loop.hasEnded ? remote.endError : CancellationError())
        } else if !hasBegun {
            hasBegun = true
            if loop.hasEnded { end(throwing: remote.endError) } else { begin(in: loop) }
        }
    }

    /// Resumes the task, if it waits, or as soon as it does. On the loop's thread.
    ///
    /// The job of a task that came from the loop returns there as if it had never left, so that it resumes at once.
    /// Other tasks first resume here and then return to their own executor.
    public final func end(throwing error: (any Error)? = nil) {
        if isTaken && !hasOpened {
            hasEndedEarly = true
            self.error = error
            return
        }
        guard isOpen.compareExchange(expected: true, desired: false, ordering: .sequentiallyConsistent).exchanged else {
            return
        }
        self.error = error
        assert(hasOpened, "a wait ends that has not begun")
        let job = self.job!
        isOver.store(true, ordering: .releasing)
        guard let origin, let loop = remote.installedReference, loop.with({ $0.takesJobs }) else {
            return job.runSynchronously(on: asUnownedSerialExecutor())
        }
        loop.with { loop in origin.jobs.with { $0.add(job, by: origin.way, in: loop) } }
    }

    // MARK: Points for subclasses

    /// Called when a task has begun to wait. The wait may end at once.
    open func begin(in loop: RunLoop) {}

    /// Indicates whether the wait continues when the task is cancelled.
    open var outlastsCancellation: Bool { false }

    /// Called when the task was cancelled after the wait had begun, before the task learns of it.
    open func cancelled(in loop: RunLoop) {}

    /// A description of the wait for reports, for example `sleeps until 2.500000000`.
    open var purpose: String? { nil }
}

extension RunLoop.Remote {
    /// Returns ``endError`` after a suspension. A task that swallows the error and tries again then takes turns, which
    /// are limited at the end of a loop; otherwise it would keep its thread for ever.
    package nonisolated(nonsending) func endErrorAfterTurn() async -> RunLoop.WaitError {
        try? await TaskWait(self).wait()
        return endError
    }
}
