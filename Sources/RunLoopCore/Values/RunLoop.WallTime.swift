internal import Glibc

extension RunLoop {
    /// A time of the wall clock: nanoseconds since the beginning of 1970 in UTC, without leap seconds.
    ///
    /// The wall clock is set and stepped by people and by time servers, so that a difference of two of its times says
    /// nothing about how long anything took; an ``Instant`` does. Arithmetic saturates, 292 years from 1970. A value and
    /// `Sendable`. Source: Dispatch's page on `DispatchWallTime`.
    public struct WallTime: Sendable, Hashable, Comparable, Codable {
        /// Nanoseconds since the beginning of 1970.
        public let nanoseconds: Int64

        /// The time this many nanoseconds after the beginning of 1970.
        public init(nanoseconds: Int64) {
            self.nanoseconds = nanoseconds
        }

        /// The time this many seconds after the beginning of 1970.
        public init(secondsSince1970 seconds: Int64) {
            nanoseconds = Instant(nanoseconds: 0).advanced(by: .seconds(seconds)).nanoseconds
        }

        /// Later than every time that is ever shown.
        public static let distantFuture = WallTime(nanoseconds: .max)

        /// Earlier than every time.
        public static let distantPast = WallTime(nanoseconds: .min)

        /// Whole seconds since the beginning of 1970, rounded down.
        public var secondsSince1970: Int64 { nanoseconds.dividedRoundingDown(by: 1_000_000_000) }

        public static func < (left: WallTime, right: WallTime) -> Bool { left.nanoseconds < right.nanoseconds }

        /// The time `duration` later, rounded to the nanosecond and saturated.
        public static func + (left: WallTime, duration: Duration) -> WallTime {
            WallTime(nanoseconds: (Instant(nanoseconds: left.nanoseconds) + duration).nanoseconds)
        }

        /// The time `duration` earlier, rounded to the nanosecond and saturated.
        public static func - (left: WallTime, duration: Duration) -> WallTime {
            WallTime(nanoseconds: (Instant(nanoseconds: left.nanoseconds) - duration).nanoseconds)
        }

        /// The difference of two times of the clock, which need not be the time that passed.
        public static func - (left: WallTime, right: WallTime) -> Duration {
            Instant(nanoseconds: left.nanoseconds) - Instant(nanoseconds: right.nanoseconds)
        }
    }
}

extension RunLoop.WallTime: CustomStringConvertible {
    /// In UTC, for example `2026-11-22T06:00:00Z`, with as many of three, six or nine digits after the second as are
    /// needed.
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
