extension RunLoop {
    /// A point on a loop's clock, in nanoseconds.
    ///
    /// For a loop in the real world the clock is `CLOCK_MONOTONIC`, which stands still while the system sleeps. On
    /// virtual time it starts at zero. Arithmetic saturates: an instant too far away to be represented is
    /// ``distantFuture`` or ``distantPast``. A value and `Sendable`.
    public struct Instant: Sendable, Hashable, Comparable, InstantProtocol {
        /// The number of nanoseconds since the clock's zero.
        public let nanoseconds: Int64

        /// Creates the instant this many nanoseconds after the clock's zero.
        public init(nanoseconds: Int64) {
            self.nanoseconds = nanoseconds
        }

        /// The latest instant, which is never reached. A timer with this fire date is parked.
        public static var distantFuture: Instant { Instant(nanoseconds: .max) }

        /// The earliest instant. A run with this limit polls once.
        public static var distantPast: Instant { Instant(nanoseconds: .min) }

        /// Returns the instant `duration` later, rounded to the nanosecond and saturated.
        public func advanced(by duration: Duration) -> Instant {
            self + duration
        }

        /// Returns the time from this instant to `other`.
        public func duration(to other: Instant) -> Duration {
            other - self
        }

        public static func < (left: Instant, right: Instant) -> Bool {
            left.nanoseconds < right.nanoseconds
        }

        public static func + (left: Instant, right: Duration) -> Instant {
            Instant(nanoseconds: right.added(to: left.nanoseconds))
        }

        public static func - (left: Instant, right: Duration) -> Instant {
            Instant(nanoseconds: right.subtracted(from: left.nanoseconds))
        }

        public static func - (left: Instant, right: Instant) -> Duration {
            .nanoseconds(left.nanoseconds.saturatingSubtracting(right.nanoseconds))
        }
    }
}

extension RunLoop.Instant: CustomStringConvertible {
    /// The instant in seconds with nanosecond precision, for example `2.000000000`.
    public var description: String {
        guard self != .distantFuture else { return "distantFuture" }
        guard self != .distantPast else { return "distantPast" }
        let (seconds, fraction) = nanoseconds.magnitude.quotientAndRemainder(dividingBy: 1_000_000_000)
        return "\(nanoseconds < 0 ? "-" : "")\(seconds).\(padded(String(fraction), to: 9))"
    }
}

extension Duration {
    /// The duration in nanoseconds, rounded to the nearest one and saturated to 64 bits (292 years). O(1).
    public var nanoseconds: Int64 {
        wholeNanoseconds ?? (attoseconds < 0 ? .min : .max)
    }

    /// The duration in nanoseconds, rounded to the nearest one; `nil` if 64 bits cannot hold it.
    @inline(__always)
    private var wholeNanoseconds: Int64? {
        // In two words, because a division of 128 bits was a tenth of the cost of scheduling a timer. A billion is 512
        // × 1,953,125. After the first shift, up to two hours fit into 64 bits, where dividing by a constant is a
        // multiplication.
        let attoseconds = attoseconds
        let sum = attoseconds.magnitude + 500_000_000
        let (high, low) = (UInt64(truncatingIfNeeded: sum >> 64), UInt64(truncatingIfNeeded: sum))
        guard high < 500_000_000 else { return nil }
        let magnitude =
            high < 512
            ? (high << 55 | low >> 9) / 1_953_125 : UInt64(1_000_000_000).dividingFullWidth((high, low)).quotient
        return attoseconds < 0 ? -Int64(magnitude) : Int64(magnitude)
    }

    fileprivate func added(to nanoseconds: Int64) -> Int64 {
        if let whole = wholeNanoseconds { return nanoseconds.saturatingAdding(whole) }
        return Int64(clamping: Int128(nanoseconds) + attoseconds / 1_000_000_000)
    }

    fileprivate func subtracted(from nanoseconds: Int64) -> Int64 {
        if let whole = wholeNanoseconds { return nanoseconds.saturatingSubtracting(whole) }
        return Int64(clamping: Int128(nanoseconds) - attoseconds / 1_000_000_000)
    }
}

extension Int64 {
    func saturatingAdding(_ other: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? (other < 0 ? .min : .max) : sum
    }

    func saturatingSubtracting(_ other: Int64) -> Int64 {
        let (difference, overflow) = subtractingReportingOverflow(other)
        return overflow ? (other > 0 ? .min : .max) : difference
    }
}

extension FixedWidthInteger {
    /// Returns the quotient by a divisor above zero, rounded down.
    @inlinable
    @_spi(Ports) public func dividedRoundingDown(by divisor: Self) -> Self {
        assert(divisor > 0, "a divisor below zero rounds up")
        let (quotient, rest) = quotientAndRemainder(dividingBy: divisor)
        return rest < 0 ? quotient - 1 : quotient
    }
}
