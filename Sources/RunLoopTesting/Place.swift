internal import CInterposition
internal import RunLoopCore
@_spi(ExperimentalCustomExecutors) internal import _Concurrency

/// The place where, in an exploration, a task waits that is on its way to or from an actor of the default executor: its
/// next job is one of those that may be chosen.
final class Place: SerialExecutor {
    private static let shared = Place()

    static func install() {
        let executor = UnownedSerialExecutor(ordinary: shared)
        // Unsafe, but the type is the runtime's pair of an object and its conformance, and so is the parameter's.
        let (object, conformance) = unsafeBitCast(executor, to: (UnsafeRawPointer, UInt).self)
        rlk_set_place(object, conformance)
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        if let preferred = withUnsafeCurrentTask(body: { $0?.unownedTaskExecutor?.asTaskExecutor() }) {
            preferred.enqueue(ExecutorJob(job))
        } else {
            globalConcurrentExecutor.enqueue(ExecutorJob(job))
        }
    }
}
