@_spi(Ports) public import RunLoopKit

/// A program that runs until it is asked to stop, and then stops in stages.
///
/// ```swift
/// let daemon = Daemon(loop: .current, manager: try ServiceManager())
/// daemon.add(server)
/// daemon.onStop(.drain) { done in backup.finish { done() } }
/// daemon.onStop(.exit) { database.close() }
/// daemon.onReload { configuration.read() }
/// exit(daemon.run())
/// ```
///
/// The daemon notifies the service manager when it is ready, reloads and stops. It calls hooks on the loop's thread, in
/// a later step of the loop and never from within ``stop(status:)``, ``hurry()`` or ``reload()``, in the common modes
/// and the daemon's own. A daemon belongs to its loop's thread and is not `Sendable`; other threads use its ``remote``.
public final class Daemon {
    /// The stages of a stop, in order.
    public enum Stage: Int, CaseIterable, Sendable, Comparable {
        /// The daemon accepts nothing new; listeners close.
        case stopAccepting
        /// The daemon finishes the work in progress.
        case drain
        /// The daemon takes the steps that must always happen, such as closing files and releasing locks, and does so
        /// quickly.
        case exit

        public static func < (left: Stage, right: Stage) -> Bool { left.rawValue < right.rawValue }
    }

    /// The state of a daemon.
    public enum State: Sendable, Hashable {
        /// The daemon is working, or has not started.
        case running
        /// Reload hooks are running; the daemon keeps working.
        case reloading
        /// The daemon is stopping, in this stage.
        case stopping(Stage)
        /// The daemon has stopped, with this status.
        case stopped(Int32)
    }

    /// The mode in which `run(announcesReady:)` runs the loop.
    public let mode: RunLoop.Mode
    /// The time that all stages before the last may take together, counted from the stop.
    public let drainLimit: Duration
    /// The time that the last stage may take.
    public let exitLimit: Duration
    /// The service manager that the daemon reports to.
    public let manager: ServiceManager

    /// The current state of the daemon.
    public internal(set) var state = State.running
    /// The names of hooks that were abandoned, running or not yet called, because of a limit or a hurried stop.
    public internal(set) var abandoned: [String] = []
    /// Called when a message to the service manager could not be sent. The daemon continues. Messages that a busy
    /// manager does not accept are kept and sent again ten times a second. The handler is called once for each such
    /// period, and again if the daemon stops before the period ends. If `nil`, the default,
    /// ``/RunLoopKit/RunLoop/trace`` receives the error.
    public var errorHandler: ((Daemon, ServiceManagerError) -> Void)?

    let loop: RunLoop
    var stopHooks: [Hook] = []
    var reloadHooks: [Hook] = []
    /// The names of hooks that were called and have not finished, by the number of the call.
    var pending: [Int: String] = [:]
    var calls = 0
    /// The tasks of hooks that have not finished, by the number of the call.
    var tasks: [Int: Task<Void, any Error>] = [:]
    /// The wait of the task that runs the daemon.
    var ending: TaskWait?
    var status: Int32 = 0
    var reloadsAgain = false
    var limit: DelayedCall?
    /// The unsent messages to the service manager, in order, and the call that sends them again.
    var messages: [Message] = []
    var resending: DelayedCall?
    private var signals: [SignalSource] = []
    private var orphans: SignalSource?
    private lazy var remoteBox = Remote(self)

    typealias Message = (ServiceManager) -> () throws(ServiceManagerError) -> Bool

    struct Hook {
        let stage: Stage
        let order: Int
        let name: String
        let body: (Completion) -> Void
    }

    /// Creates a daemon on the calling thread's loop.
    ///
    /// - Parameters:
    ///   - loop: the loop that `run(announcesReady:)` runs.
    ///   - manager: the service manager. Nothing is sent to an absent one.
    ///   - mode: the mode in which to run the loop.
    ///   - drainLimit: how long all stages before the last may take together; not negative. Together with `exitLimit`
    ///     it should be less than the unit's `TimeoutStopSec=`, after which the manager kills the process.
    ///   - exitLimit: how long the last stage may take; not negative.
    public init(
        loop: RunLoop, manager: ServiceManager, mode: RunLoop.Mode = .default, drainLimit: Duration = .seconds(30),
        exitLimit: Duration = .seconds(5)
    ) {
        require(
            drainLimit >= .zero && exitLimit >= .zero,
            "the limits for stopping are zero or more, not \(drainLimit) and \(exitLimit)")
        self.loop = loop
        self.manager = manager
        self.mode = mode
        self.drainLimit = drainLimit
        self.exitLimit = exitLimit
    }

    deinit {
        for signal in signals { signal.invalidate() }
        orphans?.invalidate()
    }

    // MARK: Hooks

    /// Adds a hook to a stage of the stop.
    ///
    /// The hooks of a stage are called one after another, by `order` and then in the order of their addition, without
    /// waiting for earlier ones to finish. The next stage begins when all hooks have finished. Call it on the loop's
    /// thread.
    ///
    /// - Parameters:
    ///   - stage: the stage in which to call the hook.
    ///   - order: the order within the stage; hooks with smaller numbers are called earlier.
    ///   - name: the name of the hook in ``abandoned``.
    ///   - hook: called once, with a completion to call when the hook has finished.
    /// - Returns: `false` if the stage has already begun, so that the hook will not be called.
    @discardableResult
    public func onStop(
        _ stage: Stage, order: Int = 0, name: String = "hook", _ hook: @escaping (Completion) -> Void
    ) -> Bool {
        switch state {
        case .stopped: return false
        case .stopping(let current) where stage <= current: return false
        default: break
        }
        let place = stopHooks.firstIndex { ($0.stage, $0.order) > (stage, order) } ?? stopHooks.endIndex
        stopHooks.insert(Hook(stage: stage, order: order, name: name, body: hook), at: place)
        return true
    }

    /// Adds a synchronous hook, which finishes when it returns, to a stage of the stop.
    @discardableResult
    public func onStop(_ stage: Stage, order: Int = 0, name: String = "hook", _ hook: @escaping () -> Void) -> Bool {
        onStop(stage, order: order, name: name) { done in
            hook()
            done()
        }
    }

    /// Adds a hook for reloads. Hooks are called one after another, in the order of their addition. A reload ends when
    /// all hooks have finished, and has no time limit. Call it on the loop's thread.
    public func onReload(name: String = "hook", _ hook: @escaping (Completion) -> Void) {
        reloadHooks.append(Hook(stage: .stopAccepting, order: 0, name: name, body: hook))
    }

    /// Adds a synchronous hook, which finishes when it returns, for reloads.
    public func onReload(name: String = "hook", _ hook: @escaping () -> Void) {
        onReload(name: name) { done in
            hook()
            done()
        }
    }

    // MARK: Signals

    /// Handles the signals of a service from now on. `SIGTERM` and `SIGINT` stop the daemon, and a second one hurries
    /// the stop. `SIGHUP` reloads the daemon. `SIGPIPE` is ignored, so that a write to a peer that has gone fails
    /// instead of ending the process.
    ///
    /// Call it before steps that take time, so that a signal that arrives while the daemon starts waits for the loop.
    /// The signal sources are in the daemon's modes and last as long as the daemon. Call it once, on the loop's thread.
    ///
    /// - Parameter heard: called with each signal before it takes effect, for example to log it.
    /// - Throws: ``SystemError`` if no descriptor is left.
    public func handleSignals(_ heard: @escaping (Signal) -> Void = { _ in }) throws {
        require(
            signals.isEmpty,
            "the daemon already handles its signals; handled twice, the first signal would hurry it; for other uses "
                + "of the signals add a SignalSource")
        try Signal.ignore(.pipe)
        try handle(.terminate, heard) { $0.stop() }
        try handle(.interrupt, heard) { $0.stop() }
        try handle(.hangUp, heard) { $0.reload() }
    }

    private func handle(
        _ signal: Signal, _ heard: @escaping (Signal) -> Void, _ action: @escaping (Daemon) -> Void
    ) throws {
        let source = try SignalSource(signal: signal) { [weak self] _ in
            heard(signal)
            if let self { action(self) }
        }
        try loop.add(source, forMode: modes)
        signals.append(source)
    }

    /// Reaps orphans from now on: processes whose parents have ended, and which the system has assigned to this process
    /// because it is process 1 of a container, or a subreaper. Otherwise they would stay as zombies. Children of
    /// ``ChildProcess`` keep their statuses.
    ///
    /// The system does not distinguish orphans from children that other code, such as Foundation's `Process`, has
    /// started and waits for; do not use both. The source of `SIGCHLD` is in the daemon's modes and lasts as long as
    /// the daemon. Each end of a child costs a few system calls. Simulated hosts have no orphans. Call it once, on the
    /// loop's thread.
    ///
    /// - Throws: ``SystemError`` if no descriptor is left.
    public func reapOrphans() throws {
        require(orphans == nil, "the daemon reaps orphans already")
        let system = WorldSystem.of(loop)
        let source = try SignalSource(signal: .child) { _ in system.reapOrphans() }
        try loop.add(source, forMode: modes)
        orphans = source
        // Some orphans may have ended already.
        system.reapOrphans()
    }

    // MARK: Means

    /// A handle through which other threads control the daemon. Any thread may use it.
    public var remote: Remote { remoteBox }

    /// The modes in which the daemon takes its steps.
    var modes: RunLoop.Modes { [.common, RunLoop.Modes(mode)] }
}

@available(*, unavailable, message: "a daemon belongs to its loop's thread; give other threads its remote")
extension Daemon: Sendable {}

extension Daemon {
    /// A handle through which other threads control a daemon. Each request wakes the loop, which carries it out on its
    /// thread, in the common modes and the daemon's own. Once the daemon is gone, requests have no effect. Any thread.
    public final class Remote: Sendable {
        private let loop: RunLoop.Remote
        private let modes: RunLoop.Modes
        // Set once, in the initializer, and read only on the thread of the daemon's loop when it delivers the request.
        private nonisolated(unsafe) weak let daemon: Daemon?

        init(_ daemon: Daemon) {
            self.daemon = daemon
            loop = daemon.loop.remote
            modes = daemon.modes
        }

        /// Stops the daemon; see ``Daemon/stop(status:)``.
        public func stop(status: Int32 = 0) {
            loop.perform(inModes: modes) { _ in self.daemon?.stop(status: status) }
        }

        /// Hurries a stop; see ``Daemon/hurry()``.
        public func hurry() {
            loop.perform(inModes: modes) { _ in self.daemon?.hurry() }
        }

        /// Reloads the daemon; see ``Daemon/reload()``.
        public func reload() {
            loop.perform(inModes: modes) { _ in self.daemon?.reload() }
        }

        func abandonRun() {
            loop.perform(inModes: modes) { _ in self.daemon?.abandonRun() }
        }

        func finished(_ call: Int) {
            loop.perform(inModes: modes) { _ in self.daemon?.finished(call) }
        }
    }

    /// The completion of a hook, to call as `done()` when the hook has finished. Any thread. Repeated calls, and calls
    /// after the daemon has abandoned the hook, have no effect.
    public struct Completion: Sendable {
        private let remote: Remote
        let call: Int

        init(_ remote: Remote, call: Int) {
            self.remote = remote
            self.call = call
        }

        /// Reports that the hook has finished. The daemon continues in a later step of the loop, never from within this
        /// call.
        public func callAsFunction() {
            remote.finished(call)
        }
    }
}
