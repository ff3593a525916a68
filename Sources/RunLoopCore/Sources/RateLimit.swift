/// How often a source may be called: at most `burst` times within `interval`.
///
/// A source that is ready more often waits until the interval has passed; nothing is lost. The interval begins with the
/// first call after the one before it has passed.
public struct RateLimit: Sendable, Hashable {
    /// The interval, above zero.
    public let interval: Duration
    /// The calls in an interval, at least one.
    public let burst: Int

    /// - Precondition: `interval` is above zero, and `burst` at least one.
    public init(interval: Duration, burst: Int) {
        require(interval > .zero, "a rate limit needs an interval above zero; it was given \(interval)")
        require(burst > 0, "a rate limit lets at least one call pass; to stop a source, remove it")
        self.interval = interval
        self.burst = burst
    }
}

/// The calls of a source with a rate limit.
struct RateWindow {
    let limit: RateLimit
    private var begin: RunLoop.Instant?
    private var calls = 0
    /// The loop has been asked to look again when the interval has passed.
    var isAwaited = false

    init(_ limit: RateLimit) {
        self.limit = limit
    }

    /// Counts a call, if there may be one now.
    ///
    /// - Returns: until when there may be none; `nil` if there may.
    mutating func take(at now: RunLoop.Instant) -> RunLoop.Instant? {
        if begin.map({ now >= $0 + limit.interval }) ?? true { (begin, calls) = (now, 0) }
        guard calls >= limit.burst else {
            calls += 1
            return nil
        }
        return begin! + limit.interval
    }

    /// Until when there may be no call; `nil` if there may be one.
    func end(at now: RunLoop.Instant) -> RunLoop.Instant? {
        guard let begin, calls >= limit.burst, now < begin + limit.interval else { return nil }
        return begin + limit.interval
    }
}

extension RunLoop {
    /// Makes another pass when a rate limit's interval has passed, in whatever mode.
    func look(again date: Instant) {
        asyncAfter(deadline: date) { [unowned self] in descriptors.unparkedMode = nil }
    }
}
