@_spi(Ports) internal import RunLoopCore
@_spi(Ports) internal import RunLoopSimulation
@_spi(ExperimentalCustomExecutors) @_spi(ExperimentalScheduling) internal import _Concurrency

/// The default executor of the process, which passes jobs of a simulation to that simulation, and all others to the
/// former default executor.
final class Router: TaskExecutor, SchedulingExecutor {
    private static let shared = Router()

    private let platform: any TaskExecutor
    /// The former executor's interface for jobs that wait for real time.
    private let platformScheduling: any SchedulingExecutor

    private init() {
        platform = PlatformExecutorFactory.defaultExecutor
        guard let scheduling = platform as? any SchedulingExecutor else {
            fatalError("this Swift runtime's default executor has no clock; RunLoopTesting was tested with Swift 6.3.1")
        }
        platformScheduling = scheduling
    }

    private enum Factory: ExecutorFactory {
        static var mainExecutor: any MainExecutor { MainRouter.shared }
        static var defaultExecutor: any TaskExecutor { Router.shared }
    }

    private static let installation: Void = {
        _createExecutors(factory: Factory.self)
        require(
            Task.defaultExecutor as AnyObject === shared && MainActor.executor as AnyObject === MainRouter.shared,
            "this Swift runtime does not let its executors be replaced; RunLoopTesting was tested with Swift 6.3.1")
        Place.install { Capture.ofThread?.rest($0) == true }
        AddressWaits.capturesPlaces.withLock { $0 = BlockedPlace.capture }
    }()

    static func install() {
        installation
    }

    /// Runs a job, whose simulation is over, on the former executor.
    static func runElsewhere(_ job: UnownedJob) {
        shared.platform.enqueue(ExecutorJob(job))
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        if let capture = Capture.ofThread {
            if capture.take(job) { return }
        } else {
            Capture.noteDeparture(of: job)
        }
        platform.enqueue(ExecutorJob(job))
    }

    func enqueue<C: Clock>(
        _ job: consuming ExecutorJob, after delay: C.Duration, tolerance: C.Duration?, clock: C
    ) {
        let job = UnownedJob(job)
        if sleep(job, for: delay) { return }
        platformScheduling.enqueue(ExecutorJob(job), after: delay, tolerance: tolerance, clock: clock)
    }

    func enqueue<C: Clock>(
        _ job: consuming ExecutorJob, at instant: C.Instant, tolerance: C.Duration?, clock: C
    ) {
        let job = UnownedJob(job)
        if sleep(job, for: clock.now.duration(to: instant)) { return }
        platformScheduling.enqueue(ExecutorJob(job), at: instant, tolerance: tolerance, clock: clock)
    }

    /// Has a job end its task's sleep in virtual time; `false` if the calling thread belongs to no simulation.
    private func sleep<Delay>(_ job: UnownedJob, for delay: Delay) -> Bool {
        guard let capture = Capture.ofThread, let delay = delay as? Duration else { return false }
        return capture.take(job, after: delay)
    }
}

/// The main actor's executor, which passes jobs of a simulation to that simulation, and all others to the former
/// executor.
private final class MainRouter: MainExecutor {
    static let shared = MainRouter()

    private let platform = PlatformExecutorFactory.mainExecutor

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        if let capture = Capture.ofThread {
            if capture.takeForMainActor(job) { return }
        } else {
            Capture.noteDeparture(of: job)
        }
        platform.enqueue(ExecutorJob(job))
    }

    func run() throws { try platform.run() }
    func stop() { platform.stop() }

    func isIsolatingCurrentContext() -> Bool? {
        Capture.ofThread?.isOnMainThread ?? platform.isIsolatingCurrentContext()
    }

    func checkIsolated() {
        guard let capture = Capture.ofThread else { return platform.checkIsolated() }
        require(
            capture.isOnMainThread,
            "code of the main actor was called on another thread of a simulation; await it from there")
    }
}
