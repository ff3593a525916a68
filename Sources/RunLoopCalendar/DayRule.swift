internal import FoundationEssentials

struct DayRule: Hashable {
    /// The days of a month: bit n is day n.
    let days: UInt64
    /// The months of a year: bit n is month n.
    let months: UInt64
    /// The days of a week: bit 0 is Sunday.
    let weekdays: UInt64
    /// Indicates whether only one of the day of the month and the day of the week must fit.
    let either: Bool

    static let allDays = CronField.dayOfMonth.all
    static let allWeekdays: UInt64 = 0b111_1111

    init(
        days: UInt64 = allDays, months: UInt64 = CronField.month.all, weekdays: UInt64 = allWeekdays,
        either: Bool = false
    ) {
        // Each day fits if one of the two is free, and equal rules must be stored alike.
        let free = either && (days == Self.allDays || weekdays == Self.allWeekdays)
        self.days = free ? Self.allDays : days
        self.months = months
        self.weekdays = free ? Self.allWeekdays : weekdays
        self.either = either && !free
    }

    /// Returns the first of the days at or after a day, counted from the beginning of 1970; `nil` if there never is
    /// one.
    func next(from day: Int64) -> Int64? {
        var month = Month(of: day)
        var first = Int(day - month.start) + 1
        // The calendar repeats after 400 years. The 29th of February may be 40 years from the next one that falls on a
        // certain day of the week.
        for _ in 0..<400 * 12 {
            let left = matches(in: month) >> UInt64(first)
            if left != 0 { return month.start + Int64(first + left.trailingZeroBitCount) - 1 }
            month.advance()
            first = 1
        }
        return nil
    }

    /// Returns the matching days of a month: bit n is day n.
    private func matches(in month: Month) -> UInt64 {
        guard months >> UInt64(month.month) & 1 != 0 else { return 0 }
        // Bit 0 is the weekday of the first of the month, and five weeks are more than a month.
        let week = (weekdays >> month.weekday | weekdays << (7 - month.weekday)) & Self.allWeekdays
        let byWeekday = (week | week << 7 | week << 14 | week << 21 | week << 28) << 1
        return (either ? days | byWeekday : days & byWeekday) & (1 << UInt64(month.length + 1) - 1)
    }
}

extension DayRule: CustomStringConvertible {
    /// The rule as three fields of crontab(5).
    var description: String {
        // Both must fit if one of the two fields begins with a star: with `*/2`, for example. Such a field contains its
        // first value.
        let both = !either && days != Self.allDays && weekdays != Self.allWeekdays
        let starDay = both && days & 0b10 != 0
        let day = CronField.dayOfMonth.text(for: days, star: starDay)
        let weekday = CronField.dayOfWeek.text(for: weekdays, star: both && !starDay)
        return "\(day) \(CronField.month.text(for: months, steps: true)) \(weekday)"
    }
}

private struct Month {
    private(set) var year: Int
    /// The month, from 1 to 12.
    private(set) var month: Int
    /// The first day of the month, counted from the beginning of 1970.
    private(set) var start: Int64

    private static let calendar = {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = .gmt
        return calendar
    }()

    init(of day: Int64) {
        let date = Date(timeIntervalSince1970: TimeInterval(day * 86_400))
        let parts = Self.calendar.dateComponents([.year, .month, .day], from: date)
        year = parts.year!
        month = parts.month!
        start = day - Int64(parts.day!) + 1
    }

    var length: Int {
        switch month {
        case 4, 6, 9, 11: 30
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        default: 31
        }
    }

    /// The weekday of the month's first day; Sunday is 0. The first day of 1970 was a Thursday.
    var weekday: UInt64 { UInt64(((start + 4) % 7 + 7) % 7) }

    mutating func advance() {
        start += Int64(length)
        month += 1
        if month > 12 { (year, month) = (year + 1, 1) }
    }
}
