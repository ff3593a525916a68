@_spi(Ports) internal import RunLoopKit

/// A time of day on the wall clock, to the minute.
public struct TimeOfDay: Sendable, Hashable, Comparable {
    /// The hour, from 0 to 23.
    public let hour: Int
    /// The minute, from 0 to 59.
    public let minute: Int

    /// Creates the time at the beginning of a minute.
    ///
    /// - Precondition: `hour` is 0 to 23, and `minute` is 0 to 59.
    public init(hour: Int, minute: Int = 0) {
        require((0...23).contains(hour), "the hours of a day are 0 to 23, not \(hour)")
        require((0...59).contains(minute), "the minutes of an hour are 0 to 59, not \(minute)")
        self.hour = hour
        self.minute = minute
    }

    /// The beginning of a day, 00:00.
    public static let midnight = TimeOfDay(hour: 0)

    public static func < (left: TimeOfDay, right: TimeOfDay) -> Bool {
        (left.hour, left.minute) < (right.hour, right.minute)
    }
}

extension TimeOfDay: CustomStringConvertible {
    /// The time with two digits each, for example `06:00`.
    public var description: String {
        "\(hour < 10 ? "0" : "")\(hour):\(minute < 10 ? "0" : "")\(minute)"
    }
}
