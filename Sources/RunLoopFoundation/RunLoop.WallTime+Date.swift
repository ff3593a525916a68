public import FoundationEssentials
public import RunLoopKit

extension RunLoop.WallTime {
    /// The time that corresponds to a date, rounded to the nanosecond and saturated.
    ///
    /// - Precondition: `date` is a number.
    public init(_ date: Date) {
        let interval = date.timeIntervalSinceReferenceDate
        require(!interval.isNaN, "a date is a number of seconds, and NaN is none; for never use Date.distantFuture")
        // Values beyond these limits are beyond those of a wall time. The whole seconds are separated, so that the
        // result keeps as much of the fraction as the date has.
        let seconds = max(-1e11, min(1e11, interval))
        let whole = seconds.rounded(.down)
        let fraction = ((seconds - whole) * 1e9).rounded()
        self =
            RunLoop.WallTime(nanoseconds: 0)
            + (.seconds(Int64(whole) + referenceDate) + .nanoseconds(Int64(fraction)))
    }
}

extension Date {
    /// The date that corresponds to a time of the wall clock, as exactly as dates are: in our days to a tenth of a
    /// microsecond. `distantFuture` and `distantPast` are those of `Date`.
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

/// The seconds from the beginning of 1970 to Foundation's reference date.
private let referenceDate: Int64 = 978_307_200
