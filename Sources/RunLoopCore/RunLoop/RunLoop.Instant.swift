extension RunLoop {
    /// A point on a loop's clock, in nanoseconds.
    ///
    /// On the real driver the clock is `CLOCK_MONOTONIC`, which stands still while the system sleeps (R152); on virtual
    /// time it starts at zero. Arithmetic saturates: an instant too far away to be represented is ``distantFuture``.
    public struct Instant: Sendable, Hashable, Comparable, InstantProtocol {
        /// Nanoseconds since the clock's zero.
        public let nanoseconds: Int64

        /// Creates an instant from nanoseconds since the clock's zero.
        public init(nanoseconds: Int64) {
            self.nanoseconds = nanoseconds
        }

        /// Later than every date that is ever reached: a timer with this fire date is parked (R133).
        public static let distantFuture = Instant(nanoseconds: .max)

        /// Earlier than every date: a limit in the distant past makes a run poll once (R43).
        public static let distantPast = Instant(nanoseconds: .min)

        /// The instant that lies `duration` later, rounded to the nanosecond and saturated.
        public func advanced(by duration: Duration) -> Instant {
            self + duration
        }

        /// The time from this instant to `other`.
        public func duration(to other: Instant) -> Duration {
            other - self
        }

        public static func < (left: Instant, right: Instant) -> Bool {
            left.nanoseconds < right.nanoseconds
        }

        public static func + (left: Instant, right: Duration) -> Instant {
            Instant(nanoseconds: Int64(clamping: Int128(left.nanoseconds) + right.wholeNanoseconds))
        }

        public static func - (left: Instant, right: Duration) -> Instant {
            Instant(nanoseconds: Int64(clamping: Int128(left.nanoseconds) - right.wholeNanoseconds))
        }

        public static func - (left: Instant, right: Instant) -> Duration {
            let (difference, overflow) = left.nanoseconds.subtractingReportingOverflow(right.nanoseconds)
            guard overflow else { return .nanoseconds(difference) }
            return .nanoseconds(left > right ? Int64.max : Int64.min)
        }
    }
}

extension RunLoop.Instant: CustomStringConvertible {
    /// Seconds with nanosecond precision, for example `2.000000000`.
    public var description: String {
        guard self != .distantFuture else { return "distantFuture" }
        guard self != .distantPast else { return "distantPast" }
        let (seconds, fraction) = nanoseconds.magnitude.quotientAndRemainder(dividingBy: 1_000_000_000)
        let digits = String(fraction)
        return "\(nanoseconds < 0 ? "-" : "")\(seconds).\(String(repeating: "0", count: 9 - digits.count))\(digits)"
    }
}

extension Duration {
    /// The duration in nanoseconds, rounded to the nearest.
    fileprivate var wholeNanoseconds: Int128 {
        let (seconds, attoseconds) = components
        let half: Int64 = attoseconds < 0 ? -500_000_000 : 500_000_000
        return Int128(seconds) * 1_000_000_000 + Int128((attoseconds + half) / 1_000_000_000)
    }

    /// The duration in nanoseconds, rounded to the nearest and saturated to what 64 bits hold (292 years).
    package var saturatedNanoseconds: Int64 { Int64(clamping: wholeNanoseconds) }
}
