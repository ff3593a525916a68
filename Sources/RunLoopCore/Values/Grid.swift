/// The dates of a timer: the next one, and every multiple of the period after it.
///
/// Fractions of a nanosecond in date and period are kept apart, in a ``Fraction``, because few periods have any. Both
/// are exact, so no error accumulates; dates are rounded down to the nanosecond. After a long pause, division finds the
/// next date in constant time.
struct Grid {
    /// The next date.
    var date: RunLoop.Instant
    /// The time between dates in nanoseconds, rounded down; 0 if there is only one.
    private(set) var period: Int64 = 0

    /// The parts of date and period beyond whole nanoseconds.
    struct Fraction {
        /// The fraction of the date, in billionths of a nanosecond.
        var rest: Int64 = 0
        /// The fraction of the period, in billionths of a nanosecond.
        let step: Int64
    }

    static let shortest = Duration.nanoseconds(1)

    /// Creates a grid of a date and every multiple of `period` after it. A period below a nanosecond counts as one
    /// nanosecond.
    static func repeating(_ date: RunLoop.Instant, _ period: Duration) -> (grid: Grid, fraction: Fraction?) {
        let (seconds, attoseconds) = max(period, shortest).components
        let (scaled, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        let (whole, step) = attoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        let (sum, overflowed) = scaled.addingReportingOverflow(whole)
        guard !overflow, !overflowed else { return (Grid(date: date, period: .max), nil) }
        assert(sum > 0 && step >= 0, "a grid needs a period")
        return (Grid(date: date, period: sum), step == 0 ? nil : Fraction(step: step))
    }

    /// Returns the number of dates after the next one that are not later than `now`; 0 if the next one is later.
    @inline(__always)
    func datesPassed(at now: RunLoop.Instant, _ fraction: Fraction?) -> Int64 {
        guard fraction == nil else { return datesPassedExactly(at: now, fraction!) }
        let (elapsed, overflow) = now.nanoseconds.subtractingReportingOverflow(date.nanoseconds)
        guard !overflow else {
            return Int64(clamping: (Int128(now.nanoseconds) - Int128(date.nanoseconds)) / Int128(period))
        }
        return elapsed < period ? 0 : elapsed / period
    }

    @inline(never)
    private func datesPassedExactly(at now: RunLoop.Instant, _ fraction: Fraction) -> Int64 {
        assert(0..<1_000_000_000 ~= fraction.rest, "the rest of a date is a nanosecond or more")
        // Date k is ⌊date + k × period⌋: it has come once k × period is less than the distance to the next nanosecond.
        guard now >= date else { return 0 }
        let nanoseconds = Int128(now.nanoseconds) - Int128(date.nanoseconds) + 1
        let elapsed = nanoseconds * Self.billion - Int128(fraction.rest) - 1
        return Int64(clamping: elapsed / (Int128(period) * Self.billion + Int128(fraction.step)))
    }

    @inline(__always)
    mutating func advance(by dates: Int64, _ fraction: inout Fraction?) {
        assert(dates >= 0, "a grid does not go back")
        let (distance, overflow) = period.multipliedReportingOverflow(by: dates)
        guard fraction == nil, !overflow else { return advanceExactly(by: dates, &fraction) }
        date = RunLoop.Instant(nanoseconds: date.nanoseconds.saturatingAdding(distance))
    }

    @inline(never)
    private mutating func advanceExactly(by dates: Int64, _ fraction: inout Fraction?) {
        let parts = Int128(fraction?.rest ?? 0) + Int128(fraction?.step ?? 0) * Int128(dates)
        fraction?.rest = Int64(parts % Self.billion)
        assert(parts >= 0, "a fraction of a date is below zero")
        let distance = Int128(period) * Int128(dates) + parts / Self.billion
        date = RunLoop.Instant(nanoseconds: Int64(clamping: Int128(date.nanoseconds) + distance))
    }

    private static let billion: Int128 = 1_000_000_000
}
