internal import Synchronization

/// A task's wait for something that happens on a loop's thread.
///
/// Subclasses say how the wait begins and what becomes of it when the task is cancelled; both happen on the loop's
/// thread. Whoever ends the wait first resumes the task, and nobody else does. The object serves one wait after another.
/// Waiting allocates nothing.
package class TaskWait: SerialExecutor, @unchecked Sendable {
    // Unchecked: a task that begins to wait hands what is below over to the loop's thread by the atomic flag.
    package let remote: RunLoop.Remote

    /// Whether a task is to be resumed.
    private let isOpen = Atomic(false)
    private let isCancelled = Atomic(false)
    /// Hands what is below back to the task. The runtime's own way of doing so is not seen by ThreadSanitizer.
    private let isOver = Atomic(false)
    /// The task that waits.
    @exclusivity(unchecked) private var job: UnownedJob?
    /// Where it came from, if that was the loop: there it goes on.
    @exclusivity(unchecked) private var origin: (jobs: UnownedReference<RunLoop.JobQueue>, way: JobWay)?
    @exclusivity(unchecked) private var error: (any Error)?
    @exclusivity(unchecked) private var hasBegun = false
    @exclusivity(unchecked) private var usedGate: JobGate?
    /// Whether the wait can be ended. On the loop's thread.
    package final var isWaiting: Bool { isOpen.load(ordering: .relaxed) }

    /// The task has come to rest. Before that it may be on its way through the queue of its actor.
    @exclusivity(unchecked) private var hasOpened = false
    /// It was ended before that.
    @exclusivity(unchecked) private var hasEndedEarly = false
    @exclusivity(unchecked) private var isUsed = false
    /// From the beginning of the wait until the task goes on. Computed, for other modules check each use of what is stored.
    package final var isTaken: Bool { isUsed }

    package init(_ remote: RunLoop.Remote) {
        self.remote = remote
    }

    /// Waits until ``end(throwing:)``. One task at a time.
    ///
    /// - Throws: what the wait ended with; `CancellationError` if the task is cancelled; ``RunLoop/WaitError`` if the loop
    ///   has ended.
    package final nonisolated(nonsending) func wait() async throws {
        isUsed = true
        defer { isUsed = false }
        (hasOpened, hasBegun, hasEndedEarly) = (false, false, false)
        error = nil
        if let running = remote.runningJobs?.with({ $0.running }),
            let scope = TaskScope.own(of: running.job, on: remote)
        {
            isCancelled.store(scope.isCancelled, ordering: .relaxed)
            scope.begin(self)
            await gate.pass()
            scope.end()
        } else {
            isCancelled.store(false, ordering: .relaxed)
            await passWithHandler()
        }
        _ = isOver.load(ordering: .acquiring)
        if let error { throw error }
    }

    /// - Parameter isolation: where the task comes from and goes on. It is a parameter because a closure within a
    ///   `nonisolated(nonsending)` function would leave.
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

    /// The task has come to the gate.
    package final func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        self.job = job
        origin = nil
        if let jobs = remote.runningJobs, let running = jobs.with({ $0.running }), running.job == job {
            origin = (jobs, running.way)
        }
        hasOpened = true
        isOpen.store(true, ordering: .sequentiallyConsistent)
        if hasEndedEarly { return end(throwing: error) }
        // A loop that has ended has told those that it knew, and this one it did not.
        if !ask() { end(throwing: remote.endError) }
    }

    /// The task was cancelled. Any thread.
    final func cancel() {
        isCancelled.store(true, ordering: .sequentiallyConsistent)
        _ = ask()
    }

    /// Has the loop look.
    private final func ask() -> Bool {
        if let loop = remote.installedReference {
            loop.with { look(in: $0) }
            return true
        }
        return remote.mailbox.post(.urgent { [self] in look(in: $0) })
    }

    /// A request may come late, when the object serves another wait: it then finds nothing to do, or does it earlier.
    private final func look(in loop: RunLoop) {
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
    /// The job of a task that came from the loop goes back there and is told that it never left, so that it goes on at
    /// once. Others go from here to where they came from.
    package final func end(throwing error: (any Error)? = nil) {
        if isTaken && !hasOpened {
            hasEndedEarly = true
            self.error = error
            return
        }
        guard isOpen.compareExchange(expected: true, desired: false, ordering: .sequentiallyConsistent).exchanged else {
            return
        }
        self.error = error
        let job = self.job!
        isOver.store(true, ordering: .releasing)
        guard let origin, let loop = remote.installedReference, loop.with({ $0.takesJobs }) else {
            return job.runSynchronously(on: asUnownedSerialExecutor())
        }
        loop.with { loop in origin.jobs.with { $0.add(job, by: origin.way, in: loop) } }
    }

    // MARK: What subclasses say

    /// A task has begun to wait. It may end at once.
    package func begin(in loop: RunLoop) {}

    /// Whether the wait goes on when the task is cancelled.
    package var outlastsCancellation: Bool { false }

    /// The task was cancelled after the wait had begun, and is about to be told.
    package func cancelled(in loop: RunLoop) {}

    /// What a report says of the task, for example `sleeps until 2.500000000`.
    package var purpose: String? { nil }
}
