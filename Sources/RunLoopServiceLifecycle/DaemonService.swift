public import RunLoopKit
public import RunLoopUnix
public import ServiceLifecycle

/// A ``RunLoopUnix/Daemon`` as a service of swift-service-lifecycle.
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
/// The daemon runs on a thread of its own, with its loop; no thread of the concurrency runtime is blocked. A graceful
/// shutdown stops it in its stages; a cancellation has it hurry. Whoever uses it leaves signals to the service group.
public struct DaemonService: Service {
    /// The daemon has ended with a status other than zero.
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
    ///   - setUp: called on that thread with its loop; returns the daemon, which is then run. What it throws ends the
    ///     service.
    public init(name: String = "daemon", _ setUp: @escaping @Sendable (RunLoop) throws -> Daemon) {
        self.name = name
        self.setUp = setUp
    }

    /// Runs the daemon until it has stopped.
    ///
    /// - Throws: what the set-up throws; ``Failure`` if the daemon ends with a status other than zero.
    public func run() async throws {
        let control = Control()
        let status = try await withTaskCancellationHandler {
            try await withGracefulShutdownHandler {
                try await withCheckedThrowingContinuation { continuation in
                    start(control) { continuation.resume(with: $0) }
                }
            } onGracefulShutdown: {
                control.ask(.stop)
            }
        } onCancel: {
            control.ask(.hurry)
        }
        guard status == 0 else { throw Failure(status: status) }
    }

    private func start(_ control: Control, _ ended: @escaping @Sendable (Result<Int32, any Error>) -> Void) {
        let setUp = setUp
        _ = LoopThread(name: name) { loop in
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
        var request = Request.none
    }

    func begin(_ daemon: Daemon.Remote) {
        let request = state.withLock { state in
            state.daemon = daemon
            return state.request
        }
        pass(on: request, to: daemon)
    }

    func ask(_ request: Request) {
        let daemon = state.withLock { state in
            if request.rawValue > state.request.rawValue { state.request = request }
            return state.daemon
        }
        if let daemon { pass(on: request, to: daemon) }
    }

    private func pass(on request: Request, to daemon: Daemon.Remote) {
        guard request != .none else { return }
        daemon.stop()
        if request == .hurry { daemon.hurry() }
    }
}
