/// Lets tasks pass no more often than a ``RateLimit`` allows, in order of arrival.
///
/// ```swift
/// let limiter = RateLimiter(RateLimit(interval: .seconds(1), burst: 10), on: loop)
/// for request in requests {
///     try await limiter.acquire()
///     try await send(request)
/// }
/// ```
///
/// Any interval contains at most `burst` passes, not only successive intervals: a pass counts until the interval has
/// passed since its task was resumed. No task overtakes another: a task that may pass and cannot run yet, because the
/// loop runs in another mode, keeps its place, and the tasks behind it wait for it. A limiter belongs to its loop's
/// thread and is not `Sendable`.
public final class RateLimiter {
    /// The greatest number of passes in an interval.
    public let limit: RateLimit

    private let loop: RunLoop
    private let modes: RunLoop.Modes
    /// The times of the last passes that still count.
    private var passes = FIFO<RunLoop.Instant>()
    // The waiting tasks. The first stays in line until it is resumed, so that none passes before it.
    private var first: Turn?
    private weak var last: Turn?
    /// The call that ends the count of the oldest pass.
    private var alarm = CallToken.none
    private static let origin = RunLoop.Origin()

    /// Creates an unused limiter for the tasks of a loop.
    ///
    /// - Parameters:
    ///   - limit: the greatest number of passes in an interval.
    ///   - loop: the loop whose clock counts.
    ///   - modes: the modes in which waiting tasks may pass. The default is the common modes.
    public init(_ limit: RateLimit, on loop: RunLoop, inModes modes: RunLoop.Modes = .common) {
        require(!modes.isEmpty, "a rate limiter needs a mode; without any, no task that waits would ever pass")
        (self.limit, self.loop, self.modes) = (limit, loop, modes)
    }

    /// Waits for the task's turn, and takes it. Returns at once if no other task waits and the limit allows it.
    ///
    /// A cancelled wait takes nothing, and the tasks behind it move up. On the loop's thread; O(1), and O(log n) if it
    /// has to wait. The limiter remembers up to `burst` passes.
    ///
    /// - Throws: `CancellationError`, also if the task was cancelled before; ``RunLoop/WaitError`` if the loop has
    ///   ended.
    public nonisolated(nonsending) func acquire() async throws {
        if loop.hasGone("a rate limiter") { throw await loop.remote.endErrorAfterTurn() }
        try TaskScope.checkCancellation(on: loop.remote)
        guard first != nil || !hasRoom(at: loop.now) else { return passes.append(loop.now) }
        let turn = Turn(self)
        try await turn.wait()
        remove(turn)
        passes.append(loop.now)
        assert(passes.count <= limit.burst, "a limit lets too many tasks pass")
        callFirst()
    }

    private func hasRoom(at now: RunLoop.Instant) -> Bool {
        while !passes.isEmpty, passes[0] + limit.interval <= now { _ = passes.popFirst() }
        return passes.count < limit.burst
    }

    /// Lets the first in line pass, as soon as it may; all, when the loop has ended.
    private func callFirst() {
        if loop.hasEnded { return endAll() }
        guard let turn = first, turn.isWaiting, !loop.timers.isPending(alarm) else { return }
        guard !hasRoom(at: loop.now) else { return turn.end() }
        assert(passes.count >= limit.burst, "a task waits, and there is room for it")
        let date = passes[0] + limit.interval
        alarm = loop.add({ [self] in oldestLeft() }, .sleep, Self.origin, modes, at: date, until: date)
    }

    private func oldestLeft() {
        alarm = .none
        callFirst()
    }

    private func endAll() {
        while let turn = first {
            remove(turn)
            turn.end(throwing: loop.remote.endError)
        }
    }

    // MARK: The line

    private func remove(_ turn: Turn) {
        assert(
            turn.previous.map { $0.next === turn } ?? (first === turn), "a turn is removed that is not in the line")
        turn.next?.previous = turn.previous
        if last === turn { last = turn.previous }
        if let previous = turn.previous { previous.next = turn.next } else { first = turn.next }
        (turn.previous, turn.next) = (nil, nil)
    }

    private final class Turn: TaskWait, @unchecked Sendable {
        // Unchecked as in `TaskWait`.
        private let limiter: RateLimiter
        var next: Turn?
        weak var previous: Turn?

        init(_ limiter: RateLimiter) {
            self.limiter = limiter
            super.init(limiter.loop.remote)
        }

        override var purpose: String? { "waits for its turn" }

        override func begin(in loop: RunLoop) {
            previous = limiter.last
            if let last = limiter.last { last.next = self } else { limiter.first = self }
            limiter.last = self
            limiter.callFirst()
        }

        override func cancelled(in loop: RunLoop) {
            limiter.remove(self)
            guard limiter.first == nil else { return }
            loop.cancel(limiter.alarm)
            limiter.alarm = .none
        }
    }
}

@available(*, unavailable, message: "a rate limiter belongs to its loop's thread")
extension RateLimiter: Sendable {}
