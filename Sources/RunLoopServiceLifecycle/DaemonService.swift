public import RunLoopKit
public import RunLoopUnix
public import ServiceLifecycle

/// A ``/RunLoopUnix/Daemon`` as a service of swift-service-lifecycle.
///
/// ```swift
/// let store = DaemonService(name: "store") { loop in
///     let daemon = Daemon(loop: loop, manager: try ServiceManager())
///     let listener = try Listener(address: address, on: loop) { … }
///     daemon.onStop(.stopAccepting) { listener.close() }
///     return daemon
/// }
/// let group = ServiceGroup(services: [store], gracefulShutdownSignals: [.sigterm], logger: logger)
/// try await group.run()
/// ```
///
/// The daemon runs on a thread of its own with its own loop; no thread of the concurrency runtime is blocked. A
/// graceful shutdown stops the daemon in stages, and a cancellation hurries it. Leave signals to the service group.
public struct DaemonService: Service {
    /// The daemon ended with a status other than zero.
    public struct Failure: Error, Sendable, Hashable, CustomStringConvertible {
        /// The status.
        public let status: Int32

        public var description: String { "the daemon has ended with status \(status)" }
    }

    private let name: String
    private let setUp: @Sendable (RunLoop) throws -> Daemon

    /// A service that makes its daemon when it is run.
    ///
    /// - Parameters:
    ///   - name: the name of the daemon's thread.
    ///   - setUp: called on that thread with its loop; returns the daemon to run. An error that it throws ends the
    ///     service.
    public init(name: String = "daemon", _ setUp: @escaping @Sendable (RunLoop) throws -> Daemon) {
        self.name = name
        self.setUp = setUp
    }

    /// Runs the daemon until it has stopped and everything in its loop has been let go.
    ///
    /// - Throws: the error of the set-up, or ``Failure`` if the daemon ends with a status other than zero.
    public func run() async throws {
        let control = Control()
        let thread = Locked<LoopThread?>(nil)
        let result = await withTaskCancellationHandler {
            await withGracefulShutdownHandler {
                await withCheckedContinuation { continuation in
                    thread.withLock { $0 = start(control) { continuation.resume(returning: $0) } }
                }
            } onGracefulShutdown: {
                control.ask(.stop)
            }
        } onCancel: {
            control.ask(.hurry)
        }
        // The daemon has ended, so this waits only until what is left in its loop has been let go. Otherwise a service
        // that is run again could find its port in use.
        thread.withLock { $0 }?.join()
        let status = try result.get()
        guard status == 0 else { throw Failure(status: status) }
    }

    private func start(
        _ control: Control, _ ended: @escaping @Sendable (Result<Int32, any Error>) -> Void
    ) -> LoopThread {
        let setUp = setUp
        return LoopThread(name: name) { loop in
            let result = Result {
                let daemon = try setUp(loop)
                control.begin(daemon.remote)
                return daemon.run()
            }
            // What is left in the loop goes with it.
            loop.endAllRuns()
            ended(result)
        }
    }
}

/// What is asked of a daemon, perhaps before there is one.
private final class Control: Sendable {
    enum Request: Int, Sendable {
        case none, stop, hurry
    }

    private let state = Locked(State())

    private struct State {
        var daemon: Daemon.Remote?
        var asked = Request.none
        var passedOn = Request.none

        /// To a daemon that is stopping already, a second stop would mean to hurry.
        mutating func passOn() {
            guard let daemon, passedOn.rawValue < asked.rawValue else { return }
            if passedOn == .none { daemon.stop() }
            if asked == .hurry { daemon.hurry() }
            passedOn = asked
        }
    }

    func begin(_ daemon: Daemon.Remote) {
        state.withLock { state in
            state.daemon = daemon
            state.passOn()
        }
    }

    func ask(_ request: Request) {
        // Passed on under the lock, so that the daemon hears of the requests in order.
        state.withLock { state in
            if request.rawValue > state.asked.rawValue { state.asked = request }
            state.passOn()
        }
    }
}
