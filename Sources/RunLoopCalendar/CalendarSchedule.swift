public import FoundationEssentials
// This module has the rules of the zones: without it, FoundationEssentials knows no zone but GMT.
internal import FoundationInternationalization
@_spi(Ports) public import RunLoopKit

/// The dates of a calendar, to the minute, in a time zone: times of day, days of the week or of the month, or a line of
/// crontab(5).
///
/// ```swift
/// let berlin = TimeZone(identifier: "Europe/Berlin")!
/// let mornings = CalendarSchedule.daily(at: TimeOfDay(hour: 6), in: berlin)
/// let workdays = try CalendarSchedule(cron: "*/10 8-17 * * mon-fri", in: berlin)
/// ```
///
/// The calendar is the Gregorian one. When a zone's clocks are put forward, some of its times do not exist; when they
/// are put back, some come twice. The rules follow cron(8) of cronie, whatever the length and the hour of the shift:
///
/// - **Certain hours**, such as every day at 02:30. A time that does not exist happens at the first moment after the
///   gap. Several times of one gap happen once, and together with a date that falls on that very moment. A time that
///   comes twice happens the first time only.
/// - **Every hour**: the same minutes in all 24 hours, such as every quarter of an hour. The dates follow the time that
///   passes: they come in both of the repeated hours, and no date replaces the dates of the gap.
///
/// In Berlin, clocks go from 02:00 to 03:00 in March and from 03:00 to 02:00 in October. Every day at 02:30 happens at
/// 03:00 in March and at the first 02:30 in October; every hour at half past happens at 01:30 and 03:30 in March, and
/// at both 02:30 in October.
///
/// Only the times decide, not their notation. In a cron expression `*` and `0-23` are every hour, `*/2` and `9-17` are
/// certain hours. Cronie's program differs: it takes an hour or a minute that begins with `*` as every hour, and
/// replaces no missing time if the shift is longer than three hours.
///
/// Offsets come from Foundation, which has the rules from 1901 to 2100. Before and after, a zone's offset is constant.
///
/// Finding the next date takes a few microseconds, however far away it is. A value and `Sendable`. Two schedules are
/// equal if they have the same times, days, months and zone, no matter how they were written.
public struct CalendarSchedule: WallSchedule, Hashable {
    /// The zone whose clocks count.
    public let timeZone: TimeZone

    /// The minutes of each of the 24 hours: bit n is minute n.
    let minutes: [UInt64]
    let days: DayRule

    /// Creates a schedule. `TimeZone.autoupdatingCurrent` becomes the current zone, so that equal questions have equal
    /// answers.
    init(minutes: [UInt64], days: DayRule, in timeZone: TimeZone) {
        self.timeZone = timeZone == .autoupdatingCurrent ? .current : timeZone
        self.minutes = minutes
        self.days = days
    }

    fileprivate init(at times: [TimeOfDay], days: DayRule = DayRule(), in timeZone: TimeZone) {
        require(!times.isEmpty, "a schedule has at least one time of day")
        var minutes = [UInt64](repeating: 0, count: 24)
        for time in times { minutes[time.hour] |= 1 << UInt64(time.minute) }
        self.init(minutes: minutes, days: days, in: timeZone)
    }
}

// Declared here, so that `WallTimer(.daily(at: …))` finds them.
extension WallSchedule where Self == CalendarSchedule {
    /// Creates dates on every day, at one or several times.
    ///
    /// - Parameters:
    ///   - times: the times on each day; in any order.
    ///   - timeZone: the zone whose clocks count. In a test, name one: the current zone is the machine's.
    /// - Precondition: `times` is not empty.
    public static func daily(at times: TimeOfDay..., in timeZone: TimeZone = .current) -> CalendarSchedule {
        CalendarSchedule(at: times, in: timeZone)
    }

    /// Creates dates on certain days of every week, at one or several times.
    ///
    /// - Parameters:
    ///   - weekdays: the days.
    ///   - times: the times on each of the days; in any order.
    ///   - timeZone: the zone whose clocks count.
    /// - Precondition: neither `weekdays` nor `times` is empty.
    public static func weekly(
        on weekdays: Set<Locale.Weekday>, at times: TimeOfDay..., in timeZone: TimeZone = .current
    ) -> CalendarSchedule {
        require(!weekdays.isEmpty, "a weekly schedule has at least one day")
        // Foundation's names are the names of crontab(5).
        let numbers = weekdays.map { CronField.dayOfWeek.names.firstIndex(of: $0.rawValue)! }
        let mask = numbers.reduce(0 as UInt64) { $0 | 1 << UInt64($1) }
        return CalendarSchedule(at: times, days: DayRule(weekdays: mask), in: timeZone)
    }

    /// Creates dates on one day of every month, at one or several times. Months without that day are left out: the 31st
    /// comes seven times a year.
    ///
    /// - Parameters:
    ///   - day: the day of the month, from 1 to 31.
    ///   - times: the times on that day; in any order.
    ///   - timeZone: the zone whose clocks count.
    /// - Precondition: `day` is 1 to 31, and `times` is not empty.
    public static func monthly(
        onDay day: Int, at times: TimeOfDay..., in timeZone: TimeZone = .current
    ) -> CalendarSchedule {
        require((1...31).contains(day), "the days of a month are 1 to 31, not \(day)")
        return CalendarSchedule(at: times, days: DayRule(days: 1 << UInt64(day)), in: timeZone)
    }

    /// Creates dates in every hour, at one or several minutes.
    ///
    /// - Parameters:
    ///   - minutes: the minutes of each hour, from 0 to 59; in any order.
    ///   - timeZone: the zone whose clocks count. Not all zones are whole hours apart.
    /// - Precondition: `minutes` is not empty, and each is 0 to 59.
    public static func hourly(atMinute minutes: Int..., in timeZone: TimeZone = .current) -> CalendarSchedule {
        CalendarSchedule(
            at: (0..<24).flatMap { hour in minutes.map { TimeOfDay(hour: hour, minute: $0) } }, in: timeZone)
    }
}

/// A use of FoundationInternationalization: an import alone does not link the rules of the zones into a static program.
let timeZoneRules: Any.Type = Date.FormatStyle.self

extension CalendarSchedule: CustomStringConvertible {
    /// The lines of crontab(5), and the zone; for example `0 6 * * 1-5 in Europe/Berlin`, or `0 6 * * *; 30 18 * * * in
    /// Europe/Berlin`.
    public var description: String {
        var lines: [String] = []
        for (hour, mask) in minutes.enumerated() where mask != 0 && minutes.firstIndex(of: mask) == hour {
            let hours = minutes.indices.reduce(0 as UInt64) { minutes[$1] == mask ? $0 | 1 << UInt64($1) : $0 }
            let minute = CronField.minute.text(for: mask, steps: true)
            lines.append("\(minute) \(CronField.hour.text(for: hours, steps: true)) \(days)")
        }
        return "\(lines.joined(separator: "; ")) in \(timeZone.identifier)"
    }
}
