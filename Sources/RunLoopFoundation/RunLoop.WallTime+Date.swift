public import FoundationEssentials
@_spi(Ports) public import RunLoopKit

extension RunLoop.WallTime {
    /// Creates the wall time that corresponds to a date, rounded to the nanosecond and saturated.
    ///
    /// - Precondition: `date` is a number.
    public init(_ date: Date) {
        let interval = date.timeIntervalSinceReferenceDate
        require(!interval.isNaN, "a date is a number of seconds, not NaN; for never use Date.distantFuture")
        // These limits exceed the range of a wall time. Whole seconds are split off so that the result keeps the date's
        // entire fraction.
        let seconds = max(-1e11, min(1e11, interval))
        let whole = seconds.rounded(.down)
        let fraction = ((seconds - whole) * 1e9).rounded()
        self =
            RunLoop.WallTime(nanoseconds: 0)
            + (.seconds(Int64(whole) + referenceDate) + .nanoseconds(Int64(fraction)))
    }
}

extension Date {
    /// Creates the date that corresponds to a wall time, with the precision of `Date`: at present a tenth of a
    /// microsecond. `distantFuture` and `distantPast` become the constants of `Date`.
    public init(_ time: RunLoop.WallTime) {
        switch time {
        case .distantFuture: self = .distantFuture
        case .distantPast: self = .distantPast
        default:
            let (seconds, rest) = time.nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
            self.init(
                timeIntervalSinceReferenceDate: TimeInterval(seconds - referenceDate) + TimeInterval(rest) / 1e9)
        }
    }
}

/// The number of seconds from the beginning of 1970 to Foundation's reference date.
private let referenceDate: Int64 = 978_307_200
