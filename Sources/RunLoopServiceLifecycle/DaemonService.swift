#if Adapters
public import RunLoopKit
public import RunLoopUnix
public import ServiceLifecycle

/// A ``/RunLoopUnix/Daemon`` as a service of swift-service-lifecycle.
///
/// ```swift
/// let store = DaemonService(name: "store") { loop in
///     let daemon = Daemon(loop: loop, manager: try ServiceManager())
///     let server = Server(on: loop) { connection, peer in … }
///     try server.listen(on: address)
///     daemon.add(server)
///     return daemon
/// }
/// let group = ServiceGroup(services: [store], gracefulShutdownSignals: [.sigterm], logger: logger)
/// try await group.run()
/// ```
///
/// The daemon has its own thread and loop, and the service's task waits for it without blocking a thread of the
/// concurrency runtime. A graceful shutdown stops the daemon in stages, and a cancellation hurries it. Leave signals to
/// the service group, the daemon in the default mode, and the runs of the loop to the service: stop the daemon, not the
/// loop.
public struct DaemonService: Service {
    /// The error of a daemon that has ended with a status other than zero.
    public struct ExitError: Error, Sendable, Hashable, CustomStringConvertible {
        /// The exit status.
        public let status: Int32

        public var description: String { "the daemon has ended with status \(status)" }
    }

    /// The former name of ``ExitError``.
    @available(*, deprecated, renamed: "ExitError")
    public typealias Failure = ExitError

    private let name: String
    private let setUp: @Sendable (RunLoop) throws -> Daemon

    /// Creates a service that makes its daemon when it runs.
    ///
    /// - Parameters:
    ///   - name: the name of the daemon's thread.
    ///   - setUp: called on that thread with its loop; returns the daemon to run. An error that it throws ends the
    ///     service.
    public init(name: String = "daemon", _ setUp: @escaping @Sendable (RunLoop) throws -> Daemon) {
        self.name = name
        self.setUp = setUp
    }

    /// Runs the daemon until it has stopped, the tasks of its loop have ended, and everything in the loop has been
    /// released.
    ///
    /// - Throws: the error of the set-up, or ``ExitError`` if the daemon ends with a status other than zero.
    public func run() async throws {
        let setUp = setUp
        let status = try await withLoop(name: name) { loop in
            let daemon = try setUp(loop)
            let remote = daemon.remote
            return try await withGracefulShutdownHandler {
                try await daemon.run()
            } onGracefulShutdown: {
                remote.stop()
            }
        }
        guard status == 0 else { throw ExitError(status: status) }
    }
}
#else
public import RunLoopKit

@available(
    *, unavailable,
    message: "RunLoopServiceLifecycle needs the trait Adapters: .package(…, traits: [\"Adapters\"])"
)
public struct DaemonService {
    public init(name: String = "", _ setUp: (RunLoop) throws -> Any) {}
}
#endif
