internal import RunLoopCore
internal import RunLoopSimulation
@_spi(ExperimentalCustomExecutors) @_spi(ExperimentalScheduling) internal import _Concurrency

/// The default executor of the process: hands jobs that come from a simulation to it, and all others to what was the
/// default executor before.
final class Router: TaskExecutor, SchedulingExecutor {
    private static let shared = Router()

    private let platform: any TaskExecutor
    /// The same, for what waits for real time.
    private let platformScheduling: any SchedulingExecutor

    private init() {
        platform = PlatformExecutorFactory.defaultExecutor
        guard let scheduling = platform as? any SchedulingExecutor else {
            fatalError("this Swift runtime's default executor knows no time; RunLoopTesting was tried with Swift 6.3.1")
        }
        platformScheduling = scheduling
    }

    private enum Factory: ExecutorFactory {
        static var mainExecutor: any MainExecutor { PlatformExecutorFactory.mainExecutor }
        static var defaultExecutor: any TaskExecutor { Router.shared }
    }

    private static let installation: Void = {
        _createExecutors(factory: Factory.self)
        require(
            Task.defaultExecutor as AnyObject === shared,
            "this Swift runtime does not let its default executor be replaced; RunLoopTesting was tried with Swift 6.3.1"
        )
    }()

    static func install() {
        installation
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        if let capture = Capture.ofThread, capture.take(job) { return }
        platform.enqueue(ExecutorJob(job))
    }

    func enqueue<C: Clock>(
        _ job: consuming ExecutorJob, after delay: C.Duration, tolerance: C.Duration?, clock: C
    ) {
        let job = UnownedJob(job)
        Router.tellOfSleep(job, clock)
        platformScheduling.enqueue(ExecutorJob(job), after: delay, tolerance: tolerance, clock: clock)
    }

    func enqueue<C: Clock>(
        _ job: consuming ExecutorJob, at instant: C.Instant, tolerance: C.Duration?, clock: C
    ) {
        let job = UnownedJob(job)
        Router.tellOfSleep(job, clock)
        platformScheduling.enqueue(ExecutorJob(job), at: instant, tolerance: tolerance, clock: clock)
    }

    private static func tellOfSleep(_ job: UnownedJob, _ clock: some Clock) {
        Capture.ofThread?.simulation.noteEscape(of: job.task, on: "\(type(of: clock))")
    }
}
