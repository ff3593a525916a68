internal import Glibc

extension RunLoop {
    /// A time of the wall clock: nanoseconds since the beginning of 1970 in UTC, without leap seconds.
    ///
    /// People and time servers set the wall clock, so the difference of two of its times does not measure a duration;
    /// use ``Instant`` for that. Arithmetic saturates, 292 years from 1970. A value and `Sendable`. Source: Dispatch's
    /// page on `DispatchWallTime`.
    public struct WallTime: Sendable, Hashable, Comparable, Codable {
        /// The number of nanoseconds since the beginning of 1970.
        public let nanoseconds: Int64

        /// Creates the time this many nanoseconds after the beginning of 1970.
        public init(nanoseconds: Int64) {
            self.nanoseconds = nanoseconds
        }

        /// Creates the time this many seconds after the beginning of 1970.
        public init(secondsSince1970 seconds: Int64) {
            nanoseconds = Instant(nanoseconds: 0).advanced(by: .seconds(seconds)).nanoseconds
        }

        /// The latest time, which is never reached.
        public static let distantFuture = WallTime(nanoseconds: .max)

        /// The earliest time.
        public static let distantPast = WallTime(nanoseconds: .min)

        /// The number of whole seconds since the beginning of 1970, rounded down.
        public var secondsSince1970: Int64 { nanoseconds.dividedRoundingDown(by: 1_000_000_000) }

        public static func < (left: WallTime, right: WallTime) -> Bool { left.nanoseconds < right.nanoseconds }

        /// Returns the time `duration` later, rounded to the nanosecond and saturated.
        public static func + (left: WallTime, duration: Duration) -> WallTime {
            WallTime(nanoseconds: (Instant(nanoseconds: left.nanoseconds) + duration).nanoseconds)
        }

        /// Returns the time `duration` earlier, rounded to the nanosecond and saturated.
        public static func - (left: WallTime, duration: Duration) -> WallTime {
            WallTime(nanoseconds: (Instant(nanoseconds: left.nanoseconds) - duration).nanoseconds)
        }

        /// Returns the difference of two times of the clock, which need not be the time that passed.
        public static func - (left: WallTime, right: WallTime) -> Duration {
            Instant(nanoseconds: left.nanoseconds) - Instant(nanoseconds: right.nanoseconds)
        }
    }
}

extension RunLoop.WallTime: CustomStringConvertible {
    /// The time in UTC, for example `2026-11-22T06:00:00Z`, with three, six or nine digits after the second, as needed.
    public var description: String {
        guard self != .distantFuture else { return "distantFuture" }
        guard self != .distantPast else { return "distantPast" }
        var (seconds, parts) = (time_t(secondsSince1970), tm())
        guard gmtime_r(&seconds, &parts) != nil else { return "\(secondsSince1970) s since 1970" }
        let date =
            [padded("\(parts.tm_year + 1900)", to: 4)]
            + [parts.tm_mon + 1, parts.tm_mday].map { padded("\($0)", to: 2) }
        let time = [parts.tm_hour, parts.tm_min, parts.tm_sec].map { padded("\($0)", to: 2) }
        let rest = nanoseconds % 1_000_000_000
        var fraction = padded("\(rest < 0 ? rest + 1_000_000_000 : rest)", to: 9)
        while fraction.hasSuffix("000") { fraction.removeLast(3) }
        return "\(date.joined(separator: "-"))T\(time.joined(separator: ":"))\(fraction.isEmpty ? "" : ".\(fraction)")Z"
    }
}
