internal import CInterposition
internal import RunLoopCore
@_spi(ExperimentalCustomExecutors) internal import _Concurrency

/// A place where a task waits on its way to another executor, most often to an actor of the default executor or back.
/// In an exploration its next job is one of those that may be chosen. At the other place, a task rests that may go on
/// for ever.
final class Place: SerialExecutor {
    private let rest: @Sendable (UnownedJob) -> Bool

    private init(_ rest: @escaping @Sendable (UnownedJob) -> Bool) {
        self.rest = rest
    }

    /// Has tasks come to both places from now on. `rest` takes the job of a task that may go on for ever; it returns
    /// `false` if that need not rest.
    static func install(resting rest: @escaping @Sendable (UnownedJob) -> Bool) {
        rlk_set_places(Place { _ in false }.makeReference(), Place(rest).makeReference())
    }

    /// The runtime's reference to the place, which stays for ever.
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
