internal import Synchronization

/// A task's wait for something that happens on a loop's thread.
///
/// Subclasses say how the wait begins and what becomes of it when the task is cancelled; both happen on the loop's
/// thread. Whoever ends the wait first resumes the task, and nobody else does. The object serves one wait after another.
/// Waiting allocates nothing.
package class TaskWait: @unchecked Sendable {
    // Unchecked: a task that begins to wait hands what is below over to the loop's thread by the atomic flag.
    package let remote: RunLoop.Remote

    fileprivate enum Waiter {
        case nobody
        case continuation(UnsafeContinuation<Void, Never>)
        case job(UnownedJob)
    }

    /// Whether a task is to be resumed.
    private let isOpen = Atomic(false)
    private let isCancelled = Atomic(false)
    /// Hands what is below back to the task. The runtime's own way of doing so is not seen by ThreadSanitizer.
    private let isOver = Atomic(false)
    @exclusivity(unchecked) private var waiter = Waiter.nobody
    @exclusivity(unchecked) private var error: (any Error)?
    @exclusivity(unchecked) private var hasBegun = false
    /// Where tasks that are isolated to an actor wait.
    private var gate: Gate?
    /// Whether the wait can be ended. On the loop's thread.
    package final var isWaiting: Bool { isOpen.load(ordering: .relaxed) }

    /// The task has come to rest. Before that it may be on its way through the queue of its actor.
    @exclusivity(unchecked) private var hasOpened = false
    /// It was ended before that.
    @exclusivity(unchecked) private var hasEndedEarly = false
    /// From the beginning of the wait until the task goes on.
    @exclusivity(unchecked) package final private(set) var isTaken = false

    package init(_ remote: RunLoop.Remote) {
        self.remote = remote
    }

    /// Waits until ``end(throwing:)``. One task at a time.
    ///
    /// - Parameter isolation: where the task stays meanwhile. It is a parameter because a closure within a
    ///   `nonisolated(nonsending)` function would leave.
    /// - Throws: what the wait ended with; `CancellationError` if the task is cancelled; ``RunLoop/WaitError`` if the loop
    ///   has ended.
    package final func wait(isolation: isolated (any Actor)? = #isolation) async throws {
        isTaken = true
        defer { isTaken = false }
        isCancelled.store(false, ordering: .relaxed)
        (hasOpened, hasBegun, hasEndedEarly) = (false, false, false)
        error = nil
        if isolation == nil {
            await withTaskCancellationHandler {
                _ = isolation
                await withUnsafeContinuation { open(for: .continuation($0)) }
            } onCancel: {
                cancel()
            }
        } else {
            if gate == nil { gate = Gate(self) }
            let gate = gate!
            await withTaskCancellationHandler {
                _ = isolation
                await gate.pass()
            } onCancel: {
                cancel()
            }
        }
        _ = isOver.load(ordering: .acquiring)
        if let error { throw error }
    }

    fileprivate final func open(for waiter: Waiter) {
        self.waiter = waiter
        hasOpened = true
        isOpen.store(true, ordering: .sequentiallyConsistent)
        if hasEndedEarly { return end(throwing: error) }
        // A loop that has ended has told those that it knew, and this one it did not.
        if !ask() { end(throwing: remote.endError) }
    }

    private final func cancel() {
        isCancelled.store(true, ordering: .sequentiallyConsistent)
        _ = ask()
    }

    /// Has the loop look.
    private final func ask() -> Bool {
        if let loop = RunLoop.installedReference, loop.with({ $0.mailbox === remote.mailbox }) {
            loop.with { look(in: $0) }
            return true
        }
        return remote.mailbox.post(.urgent { [self] in look(in: $0) })
    }

    /// A request may come late, when the object serves another wait: it then finds nothing to do, or does it earlier.
    private final func look(in loop: RunLoop) {
        guard isOpen.load(ordering: .sequentiallyConsistent) else { return }
        if isCancelled.load(ordering: .sequentiallyConsistent) {
            if hasBegun { cancelled(in: loop) }
            // The end of a loop cancels its tasks.
            end(throwing: loop.hasEnded ? remote.endError : CancellationError())
        } else if !hasBegun {
            hasBegun = true
            if loop.hasEnded { end(throwing: remote.endError) } else { begin(in: loop) }
        }
    }

    /// Resumes the task, if it waits, or as soon as it does. On the loop's thread.
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
        let waiter = self.waiter
        self.waiter = .nobody
        isOver.store(true, ordering: .releasing)
        switch waiter {
        case .nobody: break
        case .continuation(let continuation): continuation.resume()
        case .job(let job): job.runSynchronously(on: gate!.unownedExecutor)
        }
    }

    // MARK: What subclasses say

    /// A task has begun to wait. It may end at once.
    package func begin(in loop: RunLoop) {}

    /// The task was cancelled after the wait had begun, and is about to be told.
    package func cancelled(in loop: RunLoop) {}

    /// An actor that a task enters in order to wait: its executor keeps the task's job until the wait ends, and the task
    /// then goes straight back to where it came from.
    ///
    /// A continuation would resume a task that is isolated to an actor on the default executor first: a trip to another
    /// thread, which takes 10 µs, and which virtual time does not see.
    private actor Gate {
        private final class Executor: SerialExecutor {
            private unowned let wait: TaskWait

            init(_ wait: TaskWait) {
                self.wait = wait
            }

            func enqueue(_ job: consuming ExecutorJob) {
                wait.open(for: .job(UnownedJob(job)))
            }
        }

        private let executor: Executor
        private var passes = 0
        nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

        init(_ wait: TaskWait) {
            executor = Executor(wait)
        }

        /// Counts, because the compiler does not enter an actor in which there is nothing to do.
        func pass() {
            passes &+= 1
        }
    }
}
