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
/// The service manager is told when the daemon is ready, reloads and stops. Hooks are called on the loop's thread, never
/// from within ``stop(status:)``, ``hurry()`` or ``reload()``, but in a later step of the loop, in the common modes and
/// the daemon's own. A daemon belongs to its loop's thread; others use its ``remote``.
public final class Daemon {
    /// The stages of a stop, in their order.
    public enum Stage: Int, CaseIterable, Sendable, Comparable {
        /// Nothing new is let in: listeners close.
        case stopAccepting
        /// What was begun is brought to its end.
        case drain
        /// What must be done in any case, and is done quickly: files are closed, locks given back.
        case exit

        public static func < (left: Stage, right: Stage) -> Bool { left.rawValue < right.rawValue }
    }

    /// Where the daemon is in its life.
    public enum State: Sendable, Hashable {
        /// It works, or has not begun to.
        case running
        /// Reload hooks are under way; it works meanwhile.
        case reloading
        /// It stops, and is in that stage.
        case stopping(Stage)
        /// It has stopped, with that status.
        case stopped(Int32)
    }

    /// The mode that ``run(announcesReady:)`` runs the loop in.
    public let mode: RunLoop.Mode
    /// How long the stages before the last may take together, from the stop on.
    public let drainLimit: Duration
    /// How long the last stage may take.
    public let exitLimit: Duration
    /// The service manager that is told.
    public let manager: ServiceManager

    /// Where the daemon is in its life.
    public internal(set) var state = State.running
    /// The hooks that were not waited for any longer, or not called any more, because a limit had come or somebody was
    /// in a hurry: their names.
    public internal(set) var abandoned: [String] = []
    /// Called when the service manager could not be told; the daemon goes on.
    public var errorHandler: ((ServiceManagerError) -> Void)?

    let loop: RunLoop
    var stopHooks: [Hook] = []
    var reloadHooks: [Hook] = []
    /// Hooks that were called and have not said that they are done, by the number of the call.
    var pending: [Int: String] = [:]
    var calls = 0
    var status: Int32 = 0
    var reloadsAgain = false
    var limit: Timer?
    var signals: [SignalSource] = []
    var remoteBox: Remote?

    struct Hook {
        let stage: Stage
        let order: Int
        let name: String
        let body: (Completion) -> Void
    }

    /// A daemon on the calling thread's loop.
    ///
    /// - Parameters:
    ///   - loop: the loop that ``run(announcesReady:)`` runs.
    ///   - manager: the service manager; one that is absent is told nothing.
    ///   - mode: the mode to run in.
    ///   - drainLimit: how long the stages before the last may take together; not negative. With `exitLimit` it is to
    ///     be less than the unit's `TimeoutStopSec=`, after which the manager kills.
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
    /// The hooks of a stage are called one after another, by `order` and then as they were added, without waiting for
    /// one another. The next stage begins when all of them are done.
    ///
    /// - Parameters:
    ///   - stage: when to call it.
    ///   - order: smaller numbers are called earlier.
    ///   - name: what ``abandoned`` calls it.
    ///   - hook: called once, with what to call when it is done.
    /// - Returns: `false` if the stage has begun: the hook will not be called.
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

    /// Adds a hook to a stage of the stop that is done when it returns.
    @discardableResult
    public func onStop(_ stage: Stage, order: Int = 0, name: String = "hook", _ hook: @escaping () -> Void) -> Bool {
        onStop(stage, order: order, name: name) { done in
            hook()
            done()
        }
    }

    /// Adds a hook for reloads. Hooks are called one after another, as they were added; the reload is over when all
    /// are done. There is no limit for it.
    public func onReload(name: String = "hook", _ hook: @escaping (Completion) -> Void) {
        reloadHooks.append(Hook(stage: .stopAccepting, order: 0, name: name, body: hook))
    }

    /// Adds a hook for reloads that is done when it returns.
    public func onReload(name: String = "hook", _ hook: @escaping () -> Void) {
        onReload(name: name) { done in
            hook()
            done()
        }
    }

    // MARK: Means

    /// What other threads may ask of the daemon.
    public var remote: Remote {
        if remoteBox == nil { remoteBox = Remote(self) }
        return remoteBox!
    }

    /// Where the daemon's steps are made.
    var modes: RunLoop.Modes { [.common, RunLoop.Modes(mode)] }
}

@available(*, unavailable, message: "a daemon belongs to its loop's thread; give other threads its remote")
extension Daemon: Sendable {}
