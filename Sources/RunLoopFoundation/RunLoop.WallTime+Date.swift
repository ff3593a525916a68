public import FoundationEssentials
public import RunLoopKit

extension RunLoop.WallTime {
    /// The time that a date stands for, rounded to the nanosecond and saturated.
    ///
    /// - Precondition: `date` is a number.
    public init(_ date: Date) {
        let interval = date.timeIntervalSinceReferenceDate
        require(!interval.isNaN, "a date is a number of seconds, and NaN is none; for never use Date.distantFuture")
        // What is beyond these limits is beyond those of a wall time. The whole seconds are taken apart, so that as much
        // of the fraction is kept as the date has.
        let seconds = max(-1e11, min(1e11, interval))
        let whole = seconds.rounded(.down)
        let fraction = ((seconds - whole) * 1e9).rounded()
        self =
            RunLoop.WallTime(nanoseconds: 0)
            + (.seconds(Int64(whole) + referenceDate) + .nanoseconds(Int64(fraction)))
    }
}

extension Date {
    /// The date that a time of the wall clock stands for, as exactly as dates are: in our days to a tenth of a
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

/// From the beginning of 1970 to Foundation's reference date, in seconds.
private let referenceDate: Int64 = 978_307_200
