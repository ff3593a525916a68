public import FoundationEssentials

extension CalendarSchedule {
    /// Creates the dates of a line of crontab(5), such as `30 4 1,15 * fri`.
    ///
    /// The expression has five fields with blanks between them: minute (0-59), hour (0-23), day of the month (1-31),
    /// month (1-12, or `jan` to `dec`) and day of the week (0-7, or `sun` to `sat`; 0 and 7 are Sunday). Case does not
    /// matter in names. A field is `*`, a value, a range such as `10-30`, a step through all or through a range such as
    /// `*/5` or `10-30/5`, or a list of these with commas between them.
    ///
    /// If the day of the month and the day of the week are both restricted, so that neither field begins with `*`, only
    /// one of them must fit. The example is half past four on the first, on the fifteenth, and on every Friday.
    /// Otherwise both must fit.
    ///
    /// A keyword may replace the fields: `@hourly`, `@daily` or `@midnight`, `@weekly` (on Sunday), `@monthly` (on the
    /// first), `@yearly` or `@annually`; all of them at midnight except the first.
    ///
    /// - Parameters:
    ///   - expression: the line, without a command.
    ///   - timeZone: the zone whose clocks count.
    /// - Throws: ``CronError`` if the expression is not of this form, or if it has no dates, like the 30th of February.
    public init(cron expression: String, in timeZone: TimeZone = .current) throws(CronError) {
        let fields = try Self.fields(of: expression)
        var values: [UInt64] = []
        for (field, text) in zip(CronField.allCases, fields) { values.append(try field.value(of: text)) }
        // Sunday is both 0 and 7.
        let weekdays = (values[4] | values[4] >> 7) & DayRule.allWeekdays
        let days = DayRule(
            days: values[2], months: values[3], weekdays: weekdays,
            either: !fields[2].hasPrefix("*") && !fields[4].hasPrefix("*"))
        guard days.next(from: 0) != nil else {
            throw CronError(.dayOfMonth, found: fields[2], allowed: "a day that one of the months has")
        }
        self.init(minutes: (0..<24).map { values[1] >> UInt64($0) & 1 == 0 ? 0 : values[0] }, days: days, in: timeZone)
    }

    private static func fields(of expression: String) throws(CronError) -> [Substring] {
        let fields = expression.split { $0 == " " || $0 == "\t" }
        guard fields.count != 1 else {
            switch fields[0] {
            case "@hourly": return ["0", "*", "*", "*", "*"]
            case "@daily", "@midnight": return ["0", "0", "*", "*", "*"]
            case "@weekly": return ["0", "0", "*", "*", "0"]
            case "@monthly": return ["0", "0", "1", "*", "*"]
            case "@yearly", "@annually": return ["0", "0", "1", "1", "*"]
            default: throw .form(found: expression)
            }
        }
        guard fields.count == 5 else { throw .form(found: expression) }
        return fields
    }
}
