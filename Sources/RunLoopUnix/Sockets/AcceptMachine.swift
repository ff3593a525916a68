internal import Glibc
internal import RunLoopCore

/// The state machine that makes a listener's decisions: it receives events and returns actions.
///
/// The machine makes no system calls, reads no clock and calls no handlers. When its descriptor is ready, the listener
/// carries out the actions of ``next()`` until none is left.
// Not copyable, like the machine of a connection.
struct AcceptMachine: ~Copyable {
    /// A step for the listener to take now.
    enum Action: Equatable {
        /// Accept a connection, and report the result by ``acceptSucceeded(from:)`` or ``acceptFailed(_:at:)``.
        case accept
        /// Pass the accepted connection to the handler.
        case deliver
        /// Close the accepted connection.
        case turnAway
        /// Refuse a waiting connection by means of the reserve descriptor, and report success by
        /// ``refusalSucceeded()``.
        case refuse
        /// Call ``pauseEnded()`` at this date.
        case pause(until: RunLoop.Instant)
        /// Call the error handler with this system error.
        case report(errno: Int32)
    }

    private enum State {
        /// There is nothing to do until the descriptor is ready.
        case idle
        case looking
        /// An attempt to accept is in progress.
        case accepting
        case accepted(isWelcome: Bool)
        case short(errno: Int32, now: RunLoop.Instant)
        case failed(errno: Int32, now: RunLoop.Instant)
        case pausing(errno: Int32)
        case closed
    }

    /// The taker of the connections.
    private enum Taker {
        case handler
        /// Tasks take the connections.
        case tasks(Wait)
    }

    private enum Wait {
        case none
        /// A task waits for a connection.
        case awaited
        /// Connections stay in the system's queue until a task waits.
        case parked
    }

    /// The number of consecutive failures of single connections after which the listener pauses.
    static let mostFailures = 64

    private let budget: Int
    /// The maximum number of connections that wait in the system's queue.
    private let backlog: Int
    private let pause: Duration
    private var taker: Taker
    private var state = State.idle
    private var window: RateWindow?
    private var peers: PeerWindows?

    /// The time when the descriptor became ready.
    private var now = RunLoop.Instant.distantPast
    /// The number of looks at the queue of connections since the descriptor became ready.
    private var looks = 0
    private var isPausing = false
    /// True if all waiting connections are accepted now, because the listener is about to close.
    private var isFinishing = false
    /// The number of consecutive attempts that failed for a reason that need not affect the next one.
    private var failures = 0
    /// True if the owner of the listener accepts connections.
    var isOpenToConnections = true

    // The values of the listener's counters.
    private(set) var accepted = 0
    private(set) var refused = 0
    private(set) var turnedAway = 0
    private(set) var waits = 0

    init(_ options: Listener.Options, isForTasks: Bool) {
        budget = options.budget
        backlog = Int(options.backlog)
        pause = max(options.pause, .milliseconds(1))
        taker = isForTasks ? .tasks(.none) : .handler
        window = options.rateLimit.map { RateWindow($0) }
        peers = options.peerRateLimit.map { PeerWindows(limit: $0) }
    }

    /// True if the descriptor must be watched.
    var isWatching: Bool { isOpenToConnections && !isParked && !isPausing && !isClosed }

    private var isParked: Bool { if case .tasks(.parked) = taker { true } else { false } }

    var isClosed: Bool { if case .closed = state { true } else { false } }

    /// Returns the next action, which then counts as begun; `nil` if there is none until the next event.
    mutating func next() -> Action? {
        switch state {
        case .idle, .accepting, .closed: return nil
        case .looking: return look()
        case .accepted(let isWelcome):
            state = .looking
            return isWelcome ? .deliver : .turnAway
        case .short(let errno, let now):
            state = .failed(errno: errno, now: now)
            return .refuse
        case .failed(let errno, let now):
            (state, isPausing) = (.pausing(errno: errno), true)
            return .pause(until: now + pause)
        case .pausing(let errno):
            state = .idle
            return .report(errno: errno)
        }
    }

    /// Indicates whether the answer to a call of `accept` is expected; for assertions.
    private var isAccepting: Bool { if case .accepting = state { true } else { false } }

    /// Decides whether to accept another connection.
    private mutating func look() -> Action? {
        state = .idle
        // Linux lets one more connection wait than the backlog says.
        guard looks < (isFinishing ? backlog + 1 : budget), isOpenToConnections else { return nil }
        looks += 1
        // Only at the first look is a connection certain to wait; later, the task may wait again before the next pass.
        let isFirst = looks == 1
        if case .tasks(let wait) = taker, wait != .awaited, !isFinishing {
            taker = .tasks(isFirst ? .parked : .none)
            return nil
        }
        if let end = window?.end(at: now) {
            guard isFirst, !isFinishing else { return nil }
            waits += 1
            isPausing = true
            return .pause(until: end)
        }
        state = .accepting
        return .accept
    }

    // MARK: Events

    mutating func becameReady(at now: RunLoop.Instant) {
        guard case .idle = state else { return }
        (state, looks, self.now) = (.looking, 0, now)
    }

    /// Notes that a connection was accepted.
    ///
    /// - Parameter host: the peer's identity for ``Listener/Options/peerRateLimit``, if it has one.
    mutating func acceptSucceeded(from host: UInt64?) {
        assert(isAccepting, "a connection was accepted that was not asked for")
        failures = 0
        let isWelcome = host.map { peers?.take($0, at: now) } != false
        if isWelcome {
            _ = window?.take(at: now)
            accepted += 1
            awaitEnds()
        } else {
            turnedAway += 1
        }
        state = .accepted(isWelcome: isWelcome)
    }

    mutating func acceptFailed(_ errno: Int32, at now: RunLoop.Instant) {
        assert(isAccepting && errno != 0, "a call has failed that was not made")
        switch errno {
        case EAGAIN: (state, failures) = (.idle, 0)
        case EINTR: state = .looking
        // The peer has gone or is not allowed. Another connection may be waiting, unless the call always fails.
        case ECONNABORTED, EPROTO, EPERM:
            failures += 1
            state = failures < Self.mostFailures ? .looking : .failed(errno: errno, now: now)
        case EMFILE, ENFILE, ENOBUFS, ENOMEM: state = .short(errno: errno, now: now)
        default: state = .failed(errno: errno, now: now)
        }
    }

    /// Notes that the connection just delivered cannot be served.
    mutating func deliveryFailed(_ errno: Int32, at now: RunLoop.Instant) {
        guard case .looking = state else { return }
        state = .failed(errno: errno, now: now)
    }

    /// Notes that the listener is about to close.
    mutating func finish(at now: RunLoop.Instant) {
        isFinishing = true
        becameReady(at: now)
    }

    mutating func refusalSucceeded() {
        refused += 1
    }

    mutating func pauseEnded() {
        assert(isPausing, "a pause ends that has not begun")
        isPausing = false
    }

    /// Notes that a task begins to wait for a connection.
    mutating func awaitBegins() {
        if case .handler = taker { return assertionFailure("a task waits for the connections of a handler") }
        taker = .tasks(.awaited)
    }

    /// Notes that the task no longer waits.
    mutating func awaitEnds() {
        if case .tasks(.awaited) = taker { taker = .tasks(.none) }
    }

    mutating func close() {
        state = .closed
    }
}

/// The counts of each peer's recent connections.
struct PeerWindows {
    static let most = 16_384

    private let limit: RateLimit
    private(set) var windows: [UInt64: RateWindow] = [:]

    init(limit: RateLimit) {
        self.limit = limit
    }

    /// Counts a connection.
    ///
    /// - Returns: whether the limit allows it.
    mutating func take(_ peer: UInt64, at now: RunLoop.Instant) -> Bool {
        if windows.count == Self.most, windows[peer] == nil {
            windows = windows.filter { !$0.value.hasPassed(at: now) }
            // Each scan at least halves the table, so that a connection costs O(1) on average.
            if windows.count > Self.most / 2 { windows = [:] }
        }
        assert(windows.count <= Self.most, "too many peers are remembered")
        return windows[peer, default: RateWindow(limit)].take(at: now) == nil
    }
}
