internal import CInterposition
internal import RunLoopCore
@_spi(ExperimentalCustomExecutors) internal import _Concurrency

/// A place where a task waits on its way to another executor, usually to or from an actor of the default executor. In
/// an exploration, the task's next job is then among the choices. At a second place rests a task that may run forever.
final class Place: SerialExecutor {
    private let rest: @Sendable (UnownedJob) -> Bool

    private init(_ rest: @escaping @Sendable (UnownedJob) -> Bool) {
        self.rest = rest
    }

    /// Sends tasks to both places from now on. `rest` takes the job of a task that may run forever, and returns `false`
    /// if the task need not rest.
    static func install(resting rest: @escaping @Sendable (UnownedJob) -> Bool) {
        rlk_set_places(Place { _ in false }.makeReference(), Place(rest).makeReference())
    }

    /// The runtime's reference to the place, which is never released.
    private func makeReference() -> rlk_executor {
        _ = Unmanaged.passRetained(self)
        // Unsafe, but the type is the runtime's pair of an object and its conformance.
        return unsafeBitCast(UnownedSerialExecutor(ordinary: self), to: rlk_executor.self)
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        if rest(job) { return }
        if let preferred = withUnsafeCurrentTask(body: { $0?.unownedTaskExecutor?.asTaskExecutor() }) {
            preferred.enqueue(ExecutorJob(job))
        } else {
            globalConcurrentExecutor.enqueue(ExecutorJob(job))
        }
    }
}
