internal import Synchronization

/// The scope of a loop's task, and its wait on the loop's thread.
///
/// Cancelling the task ends that wait by one handler for the whole task: a handler for each wait took 1,300 of the
/// 8,660 instructions of an echo.
final class TaskScope: Sendable {
    @TaskLocal private static var current: TaskScope?

    private let remote: RunLoop.Remote
    // Unsafe, but only the loop's thread accesses these.
    /// The task; `nil` when it has ended.
    nonisolated(unsafe) private(set) var task: UnownedJob?
    /// The deadline of the scope in which the task was started; `nil` if there was none.
    nonisolated(unsafe) private(set) var deadline: ScopeDeadline?
    /// The wait of the task; `nil` while it does not wait on the loop.
    nonisolated(unsafe) var wait: TaskWait?

    private let hasCancelled = Atomic(false)

    init(_ remote: RunLoop.Remote, within deadline: ScopeDeadline?) {
        (self.remote, self.deadline) = (remote, deadline)
    }

    /// Notes that the task was started, and has not begun.
    func started(_ job: UnownedJob, _ label: TaskLabel) {
        assert(task == nil, "a scope is of two tasks")
        task = job
        TaskLabel.set(label, for: job)
    }

    /// Notes that the calling task has begun without having waited for it.
    func begun(_ job: UnownedJob) {
        assert(task == nil, "a scope is of two tasks")
        task = job
    }

    private func ended() {
        if let task { TaskLabel.set(nil, for: task) }
        // Another task may have this one's address now, and tasks started by this one still see the scope.
        if remote.isCurrent { (task, deadline) = (nil, nil) }
    }

    /// Calls `body`, whose new tasks have this scope. Binding within a task would take more stack: its frames then
    /// exceed the 512 bytes that come with it, and each task of a loop would take the next piece, 1,024 bytes.
    func bind<Result>(_ body: () -> Result) -> Result { Self.$current.withValue(self, operation: body) }

    /// Runs the body of the calling task, which prefers the loop.
    @inline(__always)
    func run<Success>(_ body: @isolated(any) () async throws -> Success) async throws -> Success {
        defer { ended() }
        return try await withTaskCancellationHandler(operation: body) { cancel() }
    }

    /// Runs the body of the calling task, in its isolation.
    nonisolated(nonsending) func run(_ body: nonisolated(nonsending) () async -> Void) async {
        defer { ended() }
        await runWithHandler(body)
    }

    private func runWithHandler(
        _ body: nonisolated(nonsending) () async -> Void, isolation: isolated (any Actor)? = #isolation
    ) async {
        await withTaskCancellationHandler {
            _ = isolation
            await body()
        } onCancel: {
            cancel()
        }
    }

    /// Returns the scope of the task whose job is running on the loop, if the task was started there: a task that has
    /// moved to another loop is cancelled where its scope is not checked. Tasks that it has started see the scope too,
    /// but do not own it.
    @inline(__always)
    static func own(of job: UnownedJob, on remote: RunLoop.Remote) -> TaskScope? {
        guard let scope = current, scope.remote.mailbox === remote.mailbox, let task = scope.task, task == job else {
            return nil
        }
        return scope
    }

    /// Returns the scope of the task that is running on the loop, if it was started there.
    @inline(__always)
    static func ofRunningTask(on remote: RunLoop.Remote) -> TaskScope? {
        remote.runningJobs?.with { $0.running }.flatMap { own(of: $0.job, on: remote) }
    }

    /// Throws if the calling task has been cancelled, or if a deadline of a scope around it has passed. For calls that
    /// may return without a wait.
    static func checkCancellation(on remote: RunLoop.Remote) throws {
        ofRunningTask(on: remote)?.deadline?.notice()
        try Task.checkCancellation()
    }

    var isCancelled: Bool { hasCancelled.load(ordering: .sequentiallyConsistent) }

    private func cancel() {
        hasCancelled.store(true, ordering: .sequentiallyConsistent)
        if remote.isCurrent {
            wait?.cancel()
        } else {
            _ = remote.mailbox.post(.urgent { [self] _ in wait?.cancel() })
        }
    }
}

extension RunLoop.Remote {
    /// The queue whose job the calling thread runs, if that is one of this loop's.
    var runningJobs: UnownedReference<RunLoop.JobQueue>? {
        installedReference?.with { loop in loop.runs.jobItem.map { UnownedReference(address: $0.address) } }
    }
}
