public import FoundationEssentials

extension CalendarSchedule {
    /// The dates of a line of crontab(5), such as `30 4 1,15 * fri`.
    ///
    /// The expression has five fields with blanks between them: minute (0-59), hour (0-23), day of the month (1-31), month
    /// (1-12, or `jan` to `dec`) and day of the week (0-7, or `sun` to `sat`; 0 and 7 are Sunday). Case does not matter in
    /// names. A field is `*`, a value, a range such as `10-30`, a step through all or through a range such as `*/5` or
    /// `10-30/5`, or a list of these with commas between them.
    ///
    /// If the day of the month and the day of the week are both restricted, so that neither field begins with `*`, it is
    /// enough that one of them fits: the example is half past four on the first, on the fifteenth, and on every Friday.
    /// Otherwise both must fit.
    ///
    /// In place of the fields there may be `@hourly`, `@daily` or `@midnight`, `@weekly` (on Sunday), `@monthly` (on the
    /// first), `@yearly` or `@annually`; all of them at midnight but for the first.
    ///
    /// - Parameters:
    ///   - expression: the line, without a command.
    ///   - timeZone: the zone whose clocks count.
    /// - Throws: ``CronError`` if the expression is not of this form, or if it has no dates, like the 30th of February.
    public init(cron expression: String, in timeZone: TimeZone = .current) throws(CronError) {
        let fields = try Self.fields(of: expression)
        var values: [UInt64] = []
        for (field, text) in zip(CronField.allCases, fields) { values.append(try field.value(of: text)) }
        // Sunday is 0 as well as 7.
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

    /// What is wrong with a cron expression.
    public struct CronError: Error, Sendable, Hashable, CustomStringConvertible {
        /// A field of a cron expression. The cases are in the order of the fields.
        public enum Field: Sendable, Hashable, CaseIterable {
            /// 0 to 59.
            case minute
            /// 0 to 23.
            case hour
            /// 1 to 31.
            case dayOfMonth
            /// 1 to 12, or `jan` to `dec`.
            case month
            /// 0 to 7, or `sun` to `sat`.
            case dayOfWeek
        }

        /// The field that is wrong; `nil` if the expression has no five fields.
        public let field: Field?
        /// What stands there: a part of the field, or the whole expression.
        public let found: String
        /// What may stand there, in words.
        public let allowed: String

        init(_ field: Field?, found: some StringProtocol, allowed: String) {
            self.field = field
            self.found = String(found)
            self.allowed = allowed
        }

        fileprivate static func form(found: String) -> CronError {
            CronError(
                nil, found: found,
                allowed: "minute, hour, day of the month, month and day of the week, or "
                    + "@hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually")
        }

        /// The field, what was found, and what is allowed; for example `minute: found "60"; allowed: 0 to 59`.
        public var description: String {
            let place =
                switch field {
                case .minute: "minute"
                case .hour: "hour"
                case .dayOfMonth: "day of the month"
                case .month: "month"
                case .dayOfWeek: "day of the week"
                case nil: "cron expression"
                }
            return "\(place): found \"\(found)\"; allowed: \(allowed)"
        }
    }
}

/// How a field of a cron expression is read and written. Its value is a set: bit n is the value n.
typealias CronField = CalendarSchedule.CronError.Field

extension CronField {
    private var range: ClosedRange<Int> {
        switch self {
        case .minute: 0...59
        case .hour: 0...23
        case .dayOfMonth: 1...31
        case .month: 1...12
        case .dayOfWeek: 0...7
        }
    }

    private var names: [String] {
        switch self {
        case .minute, .hour, .dayOfMonth: []
        case .month: ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
        case .dayOfWeek: ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
        }
    }

    /// All its values, but not Sunday for a second time.
    var all: UInt64 {
        (range.lowerBound...(self == .dayOfWeek ? 6 : range.upperBound)).reduce(0) { $0 | 1 << UInt64($1) }
    }

    // MARK: Reading

    func value(of text: Substring) throws(CalendarSchedule.CronError) -> UInt64 {
        var set: UInt64 = 0
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            let element = part.isEmpty ? text : part
            let parts = part.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
            let ends = parts[0].split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
            var bounds = (range.lowerBound, range.upperBound)
            if parts[0] != "*" {
                bounds = (try number(ends[0], in: element), try number(ends[ends.count - 1], in: element))
            }
            guard bounds.0 <= bounds.1 else {
                throw error(
                    element, self == .dayOfWeek ? "a range that goes up; 5-7 ends on Sunday" : "a range that goes up")
            }
            var step = 1
            if parts.count == 2 {
                guard let count = Self.number(parts[1]), count > 0 else {
                    throw error(element, "a step that is a number from 1 on")
                }
                guard parts[0] == "*" || ends.count == 2 else {
                    throw error(
                        element, "a step after * or after a range, such as \(parts[0])-\(range.upperBound)/\(count)")
                }
                // No range is longer, and a sum shall not overflow.
                step = min(count, 60)
            }
            for value in stride(from: bounds.0, through: bounds.1, by: step) { set |= 1 << UInt64(value) }
        }
        return set
    }

    private func number(_ text: Substring, in element: Substring) throws(CalendarSchedule.CronError) -> Int {
        let name = text.lowercased()
        if let place = names.firstIndex(of: name) { return range.lowerBound + place }
        guard let number = Self.number(text), range.contains(number) else {
            var allowed = "\(range.lowerBound) to \(range.upperBound)"
            if let first = names.first, let last = names.last { allowed += " or \(first) to \(last)" }
            throw error(text.isEmpty ? element : text, allowed)
        }
        return number
    }

    /// Digits and nothing else.
    private static func number(_ text: Substring) -> Int? {
        text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } ? Int(text) : nil
    }

    private func error(_ found: Substring, _ allowed: String) -> CalendarSchedule.CronError {
        CalendarSchedule.CronError(self, found: found, allowed: allowed)
    }

    // MARK: Writing

    /// What stands for a set. With `steps` it may begin with a star, and with `star` it does; then the set contains the
    /// first value.
    func text(for set: UInt64, steps: Bool = false, star: Bool = false) -> String {
        guard set != all else { return "*" }
        let values = range.filter { set >> UInt64($0) & 1 != 0 }
        if star || steps && values.count > 2 {
            for step in 2...range.upperBound {
                let stepped = stride(from: range.lowerBound, through: range.upperBound, by: step)
                if stepped.filter({ self != .dayOfWeek || $0 < 7 }) == values { return "*/\(step)" }
            }
        }
        return star ? "*/\(range.upperBound),\(Self.list(values.dropFirst()))" : Self.list(values[...])
    }

    /// Values with commas, and three or more that follow on each other as ranges.
    private static func list(_ values: ArraySlice<Int>) -> String {
        var elements: [String] = []
        var rest = values
        while let first = rest.first {
            let run = zip(rest, first...).prefix { $0 == $1 }.count
            let count = run > 2 ? run : 1
            elements.append(run > 2 ? "\(first)-\(first + run - 1)" : "\(first)")
            rest = rest.dropFirst(count)
        }
        return elements.joined(separator: ",")
    }
}
