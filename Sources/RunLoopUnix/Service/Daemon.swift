public import RunLoopKit

/// A program that runs until it is told to stop, and then stops in stages.
///
/// ```swift
/// let daemon = Daemon(loop: .current, manager: try ServiceManager())
/// daemon.onStop(.stopAccepting) { listener.close() }
/// daemon.onStop(.drain) { done in connections.closeWhenIdle { done() } }
/// daemon.onStop(.exit) { database.close() }
/// daemon.onReload { configuration.read() }
/// exit(daemon.run())
/// ```
///
/// The daemon tells the service manager when it is ready, reloads and stops. It calls hooks on the loop's thread, in a
/// later step of the loop and never from within ``stop(status:)``, ``hurry()`` or ``reload()``, in the common modes and
/// the daemon's own. A daemon belongs to its loop's thread and is not `Sendable`; other threads use its ``remote``.
public final class Daemon {
    /// The stages of a stop, in order.
    public enum Stage: Int, CaseIterable, Sendable, Comparable {
        /// Nothing new is accepted: listeners close.
        case stopAccepting
        /// Work that was begun is finished.
        case drain
        /// What must be done in any case, and quickly: files are closed, locks are released.
        case exit

        public static func < (left: Stage, right: Stage) -> Bool { left.rawValue < right.rawValue }
    }

    /// Where the daemon is in its life.
    public enum State: Sendable, Hashable {
        /// It works, or has not begun yet.
        case running
        /// Reload hooks are running; the daemon keeps working.
        case reloading
        /// It is stopping, and is in this stage.
        case stopping(Stage)
        /// It has stopped, with this status.
        case stopped(Int32)
    }

    /// The mode that `run(announcesReady:)` runs the loop in.
    public let mode: RunLoop.Mode
    /// How long all stages before the last may take together, counted from the stop.
    public let drainLimit: Duration
    /// How long the last stage may take.
    public let exitLimit: Duration
    /// The service manager that it reports to.
    public let manager: ServiceManager

    /// Where the daemon is in its life.
    public internal(set) var state = State.running
    /// The names of hooks that were given up, running or not yet called, because a limit was reached or somebody was in
    /// a hurry.
    public internal(set) var abandoned: [String] = []
    /// Called when the service manager could not be told. The daemon carries on. What a busy manager does not take is
    /// kept and tried again ten times a second; the handler is told once of such a time, and again if the daemon stops
    /// before it is over. Unless set, ``/RunLoopKit/RunLoop/trace`` is told.
    public var errorHandler: ((ServiceManagerError) -> Void)?

    let loop: RunLoop
    var stopHooks: [Hook] = []
    var reloadHooks: [Hook] = []
    /// Hooks that were called and have not finished, by the number of the call.
    var pending: [Int: String] = [:]
    var calls = 0
    /// The tasks of hooks that have not finished, by the number of the call.
    var tasks: [Int: Task<Void, any Error>] = [:]
    /// What the task that runs the daemon waits for.
    var ending: TaskWait?
    var status: Int32 = 0
    var reloadsAgain = false
    var limit: DelayedCall?
    /// What the service manager has still to be told, in order, and when that is tried again.
    var messages: [Message] = []
    var resending: DelayedCall?
    var signals: [SignalSource] = []
    var remoteBox: Remote?

    typealias Message = (ServiceManager) -> () throws(ServiceManagerError) -> Bool

    struct Hook {
        let stage: Stage
        let order: Int
        let name: String
        let body: (Completion) -> Void
    }

    /// A daemon on the calling thread's loop.
    ///
    /// - Parameters:
    ///   - loop: the loop that `run(announcesReady:)` runs.
    ///   - manager: the service manager; an absent one is told nothing.
    ///   - mode: the mode to run in.
    ///   - drainLimit: how long all stages before the last may take together; not negative. Together with `exitLimit`
    ///     it should be less than the unit's `TimeoutStopSec=`, after which the manager kills the process.
    ///   - exitLimit: how long the last stage may take; not negative.
    public init(
        loop: RunLoop, manager: ServiceManager, mode: RunLoop.Mode = .default, drainLimit: Duration = .seconds(30),
        exitLimit: Duration = .seconds(5)
    ) {
        require(drainLimit >= .zero && exitLimit >= .zero, "a limit for stopping is a time from then on: zero or more")
        self.loop = loop
        self.manager = manager
        self.mode = mode
        self.drainLimit = drainLimit
        self.exitLimit = exitLimit
    }

    deinit {
        for signal in signals { signal.invalidate() }
    }

    // MARK: Hooks

    /// Adds a hook to a stage of the stop.
    ///
    /// The hooks of a stage are called one after another, by `order` and then as they were added. Each is called
    /// without waiting for the one before to finish. The next stage begins when all of them have finished. Call this on
    /// the loop's thread.
    ///
    /// - Parameters:
    ///   - stage: when to call it.
    ///   - order: smaller numbers are called earlier.
    ///   - name: its name in ``abandoned``.
    ///   - hook: called once, with what it must call when it has finished.
    /// - Returns: `false` if the stage has begun already: the hook will not be called.
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

    /// Adds a hook to a stage of the stop that has finished when it returns.
    @discardableResult
    public func onStop(_ stage: Stage, order: Int = 0, name: String = "hook", _ hook: @escaping () -> Void) -> Bool {
        onStop(stage, order: order, name: name) { done in
            hook()
            done()
        }
    }

    /// Adds a hook for reloads. Hooks are called one after another, as they were added. The reload is over when all
    /// have finished; it has no time limit. Call this on the loop's thread.
    public func onReload(name: String = "hook", _ hook: @escaping (Completion) -> Void) {
        reloadHooks.append(Hook(stage: .stopAccepting, order: 0, name: name, body: hook))
    }

    /// Adds a hook for reloads that has finished when it returns.
    public func onReload(name: String = "hook", _ hook: @escaping () -> Void) {
        onReload(name: name) { done in
            hook()
            done()
        }
    }

    // MARK: Means

    /// What other threads may ask of the daemon. Any thread may use it.
    public var remote: Remote {
        if remoteBox == nil { remoteBox = Remote(self) }
        return remoteBox!
    }

    /// The modes in which the daemon's steps are made.
    var modes: RunLoop.Modes { [.common, RunLoop.Modes(mode)] }
}

@available(*, unavailable, message: "a daemon belongs to its loop's thread; give other threads its remote")
extension Daemon: Sendable {}
