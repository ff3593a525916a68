/// A field of a cron expression, to be read and written. Its value is a set: bit n is the value n.
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

    var names: [String] {
        switch self {
        case .minute, .hour, .dayOfMonth: []
        case .month: ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
        case .dayOfWeek: ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
        }
    }

    /// The set of all values, with Sunday only once.
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
                // No range is longer, and a sum must not overflow.
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

    /// Reads digits and nothing else.
    private static func number(_ text: Substring) -> Int? {
        text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } ? Int(text) : nil
    }

    private func error(_ found: Substring, _ allowed: String) -> CalendarSchedule.CronError {
        CalendarSchedule.CronError(self, found: found, allowed: allowed)
    }

    // MARK: Writing

    /// Returns the text for a set. With `steps` it may begin with a star; with `star` it does, and the set must contain
    /// the first value.
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

    /// Returns values with commas; three or more consecutive values become a range.
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
