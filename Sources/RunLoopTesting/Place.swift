internal import CInterposition
internal import RunLoopCore
internal import RunLoopSimulation
@_spi(ExperimentalCustomExecutors) internal import _Concurrency

/// A place where a task waits on its way to another executor, most often to an actor of the default executor or back.
///
/// In an exploration its next job is one of those that may be chosen. At the other place, the task rests that may go on for
/// ever.
final class Place: SerialExecutor {
    private static let ofChoice = Place(rests: false)
    private static let ofRest = Place(rests: true)

    private let rests: Bool

    private init(rests: Bool) {
        self.rests = rests
    }

    static func install() {
        rlk_set_places(ofChoice.reference, ofRest.reference)
    }

    private var reference: rlk_executor {
        // Unsafe, but the type is the runtime's pair of an object and its conformance.
        unsafeBitCast(UnownedSerialExecutor(ordinary: self), to: rlk_executor.self)
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        if rests, let capture = Capture.ofThread, let rest = capture.simulation.restAfterSteps(),
            capture.take(job, after: rest)
        {
            return
        }
        if let preferred = withUnsafeCurrentTask(body: { $0?.unownedTaskExecutor?.asTaskExecutor() }) {
            preferred.enqueue(ExecutorJob(job))
        } else {
            globalConcurrentExecutor.enqueue(ExecutorJob(job))
        }
    }
}
