/// A limit of at most `burst` calls or passes within `interval`.
///
/// A source with a limit counts its calls in successive intervals: an interval begins with the first call after the
/// previous interval has passed. A source that is ready more often waits until then; nothing is lost. Tasks wait with a
/// ``RateLimiter``, which looks back an interval from each pass. A value and `Sendable`.
public struct RateLimit: Sendable, Hashable {
    /// The interval, above zero.
    public let interval: Duration
    /// The number of calls in an interval, at least one.
    public let burst: Int

    /// Creates a limit of `burst` calls in each `interval`.
    ///
    /// - Precondition: `interval` is above zero, and `burst` at least one.
    public init(interval: Duration, burst: Int) {
        require(interval > .zero, "a rate limit needs an interval above zero; it was given \(interval)")
        require(burst > 0, "a rate limit lets at least one call pass; to stop a source, remove it")
        self.interval = interval
        self.burst = burst
    }
}

/// The events counted for a rate limit, for example the calls of a source.
package struct RateWindow {
    let limit: RateLimit
    private var begin: RunLoop.Instant?
    private var calls: Int

    /// - Parameter former: a window of another limit, whose calls count for this one too.
    package init(_ limit: RateLimit, after former: RateWindow? = nil) {
        (self.limit, begin, calls) = (limit, former?.begin, former?.calls ?? 0)
    }

    /// Counts a call and returns `nil` if one is allowed now; otherwise returns the date from which one is.
    package mutating func take(at now: RunLoop.Instant) -> RunLoop.Instant? {
        if let end = end(at: now) { return end }
        if hasPassed(at: now) { (begin, calls) = (now, 0) }
        calls += 1
        assert(calls <= limit.burst, "a limit lets too many calls pass")
        return nil
    }

    /// Returns the date from which a call is allowed; `nil` if one is allowed now.
    package func end(at now: RunLoop.Instant) -> RunLoop.Instant? {
        guard let begin, calls >= limit.burst, now < begin + limit.interval else { return nil }
        return begin + limit.interval
    }

    /// Returns whether the counted calls no longer matter.
    package func hasPassed(at now: RunLoop.Instant) -> Bool { begin.map { now >= $0 + limit.interval } ?? true }
}
