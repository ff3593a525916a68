internal import Glibc
internal import RunLoopCore

/// The decisions of a listener: a state machine that receives events and answers with actions.
///
/// It makes no system call, reads no clock and calls nobody. When its descriptor is ready, the listener carries out the
/// actions of ``next()`` until there is none left.
// Not copyable, as the machine of a connection is not.
struct AcceptMachine: ~Copyable {
    /// A step that the listener is to take now.
    enum Action: Equatable {
        /// Accept a connection, and tell the machine of it by ``acceptSucceeded(from:)`` or ``acceptFailed(_:at:)``.
        case accept
        /// Pass the accepted connection to the handler.
        case deliver
        /// Close the accepted connection.
        case turnAway
        /// Refuse a connection that waits, by means of the reserve descriptor, and tell the machine of it by
        /// ``refusalSucceeded()``.
        case refuse
        /// Have ``pauseEnded()`` called at this date.
        case pause(until: RunLoop.Instant)
        /// Call the error handler with this error of the system.
        case report(errno: Int32)
    }

    private enum State {
        /// Nothing is to be done until the descriptor is ready.
        case idle
        case looking
        /// An attempt to accept is under way.
        case accepting
        case accepted(isWelcome: Bool)
        case short(errno: Int32, now: RunLoop.Instant)
        case failed(errno: Int32, now: RunLoop.Instant)
        case pausing(errno: Int32)
        case closed
    }

    /// The most failures in a row that may each be about one connection, until the listener pauses.
    static let mostFailures = 64

    private let budget: Int
    /// The most connections that wait in the system's queue.
    private let backlog: Int
    private let pause: Duration
    private let isForTasks: Bool
    private var state = State.idle
    private var window: RateWindow?
    private var peers: PeerWindows?

    /// When the descriptor was ready.
    private var now = RunLoop.Instant.distantPast
    /// The number of looks at the queue of connections since then.
    private var looks = 0
    /// Whether a task waits for a connection.
    private var isAwaited = false
    /// Whether connections are left in the system's queue until a task waits.
    private var isParked = false
    private var isPausing = false
    /// Whether all connections that wait are accepted now, because the listener is about to close.
    private var isFinishing = false
    /// The number of attempts in a row that failed for a reason that may be gone at the next one.
    private var failures = 0
    /// Whether the owner of the listener takes connections.
    var isOpenToConnections = true

    // The numbers of the listener's properties.
    private(set) var accepted = 0
    private(set) var refused = 0
    private(set) var turnedAway = 0
    private(set) var waits = 0

    init(_ options: Listener.Options, isForTasks: Bool) {
        budget = options.budget
        backlog = Int(options.backlog)
        pause = max(options.pause, .milliseconds(1))
        self.isForTasks = isForTasks
        window = options.rateLimit.map { RateWindow($0) }
        peers = options.peerRateLimit.map { PeerWindows(limit: $0) }
    }

    /// Whether the descriptor is to be watched.
    var isWatching: Bool { isOpenToConnections && !isParked && !isPausing && !isClosed }

    var isClosed: Bool { if case .closed = state { true } else { false } }

    /// The next thing to do; `nil` if there is nothing until something happens. The action is taken as begun.
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

    /// Decides whether to accept another connection.
    private mutating func look() -> Action? {
        state = .idle
        // Linux lets one more wait than the backlog says.
        guard looks < (isFinishing ? backlog + 1 : budget), isOpenToConnections else { return nil }
        looks += 1
        // Only at the first look a connection certainly waits, and later the task may wait again before the next pass.
        let isFirst = looks == 1
        if isForTasks && !isAwaited && !isFinishing {
            isParked = isFirst
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

    /// A connection was accepted.
    ///
    /// - Parameter host: the peer's number for ``Listener/Options/peerRateLimit``, if it has one.
    mutating func acceptSucceeded(from host: UInt64?) {
        failures = 0
        let isWelcome = host.map { peers?.take($0, at: now) } != false
        if isWelcome {
            _ = window?.take(at: now)
            accepted += 1
            isAwaited = false
        } else {
            turnedAway += 1
        }
        state = .accepted(isWelcome: isWelcome)
    }

    mutating func acceptFailed(_ errno: Int32, at now: RunLoop.Instant) {
        switch errno {
        case EAGAIN: (state, failures) = (.idle, 0)
        case EINTR: state = .looking
        // The peer has gone, or is not allowed: there may be another connection, unless the call always fails.
        case ECONNABORTED, EPROTO, EPERM:
            failures += 1
            state = failures < Self.mostFailures ? .looking : .failed(errno: errno, now: now)
        case EMFILE, ENFILE, ENOBUFS, ENOMEM: state = .short(errno: errno, now: now)
        default: state = .failed(errno: errno, now: now)
        }
    }

    /// The connection that was passed on cannot be served.
    mutating func deliveryFailed(_ errno: Int32, at now: RunLoop.Instant) {
        guard case .looking = state else { return }
        state = .failed(errno: errno, now: now)
    }

    /// The listener is about to close.
    mutating func finish(at now: RunLoop.Instant) {
        isFinishing = true
        becameReady(at: now)
    }

    mutating func refusalSucceeded() {
        refused += 1
    }

    mutating func pauseEnded() {
        isPausing = false
    }

    /// A task begins to wait for a connection.
    mutating func awaitBegins() {
        (isAwaited, isParked) = (true, false)
    }

    /// The task waits no more.
    mutating func awaitEnds() {
        isAwaited = false
    }

    mutating func close() {
        state = .closed
    }
}

/// The recent connections of each peer, counted.
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
        return windows[peer, default: RateWindow(limit)].take(at: now) == nil
    }
}
