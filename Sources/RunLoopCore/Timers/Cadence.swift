/// The grid of a timer: its anchor, and every multiple of the period after it.
///
/// The k-th date is computed from the anchor, never from the date before, so that nothing accumulates: a period that is
/// not a whole number of nanoseconds keeps its fraction (in attoseconds). The next date after a long pause is found by
/// division, in constant time.
struct Cadence {
    /// The date of index 0.
    private(set) var anchor: RunLoop.Instant
    private let nanoseconds: Int64
    private let attoseconds: Int64

    /// The index of the date that is due next.
    private(set) var index: Int64 = 0

    /// How many dates had come when the timer last fired.
    private var counted: Int64 = 0

    /// - Parameter period: the time between dates; zero if there is only the anchor.
    init(anchor: RunLoop.Instant, period: Duration) {
        self.anchor = anchor
        let (seconds, fraction) = period.components
        let (scaled, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        let (whole, rest) = fraction.quotientAndRemainder(dividingBy: 1_000_000_000)
        let (sum, overflowed) = scaled.addingReportingOverflow(whole)
        nanoseconds = overflow || overflowed ? .max : sum
        attoseconds = overflow || overflowed ? 0 : rest
    }

    /// The date that is due next.
    var date: RunLoop.Instant { date(index) }

    /// The time between dates.
    var period: Duration {
        .nanoseconds(nanoseconds) + Duration(secondsComponent: 0, attosecondsComponent: attoseconds)
    }

    /// Begins a new grid at `anchor`; dates of the old one are forgotten, not missed.
    mutating func restart(at anchor: RunLoop.Instant) {
        self.anchor = anchor
        index = 0
        counted = 0
    }

    /// Notes that the pending date is fired at `now`, and tells how many dates passed without a fire of their own since
    /// the fire before.
    mutating func fire(at now: RunLoop.Instant) -> Int {
        let passed = min(max(datesPassed(at: now), index + 1), Cadence.lastIndex)
        defer { counted = passed }
        return Int(max(0, passed - counted - 1))
    }

    /// Moves to the first date strictly after `now` (R115, R116).
    mutating func advance(past now: RunLoop.Instant) {
        index = min(max(datesPassed(at: now), index + 1), Cadence.lastIndex)
    }

    /// Beyond it nothing is counted any more, so that the next index is still a number.
    private static let lastIndex = Int64.max - 1

    /// How many dates there are that are not later than `now`.
    private func datesPassed(at now: RunLoop.Instant) -> Int64 {
        guard now >= anchor else { return 0 }
        if date(index) > now || date(index + 1) > now { return date(index) > now ? index : index + 1 }
        let elapsed = Int128(now.nanoseconds) - Int128(anchor.nanoseconds)
        let period = Int128(nanoseconds) * 1_000_000_000 + Int128(attoseconds)
        // One too many at most: the date is rounded down to a nanosecond, the quotient is not.
        var passed = min(Int64(clamping: (elapsed * 1_000_000_000 + 999_999_999) / period + 1), Cadence.lastIndex)
        while passed > 0 && date(passed - 1) > now { passed -= 1 }
        return passed
    }

    private func date(_ index: Int64) -> RunLoop.Instant {
        let fraction =
            attoseconds == 0
            ? 0 : Int64(1_000_000_000).dividingFullWidth(attoseconds.multipliedFullWidth(by: index)).quotient
        let (whole, overflow) = nanoseconds.multipliedReportingOverflow(by: index)
        let (offset, overflowed) = whole.addingReportingOverflow(fraction)
        let (date, overflowing) = anchor.nanoseconds.addingReportingOverflow(offset)
        guard overflow || overflowed || overflowing else { return RunLoop.Instant(nanoseconds: date) }
        let exact = Int128(anchor.nanoseconds) + Int128(nanoseconds) * Int128(index) + Int128(fraction)
        return RunLoop.Instant(nanoseconds: Int64(clamping: exact))
    }
}
