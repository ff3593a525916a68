import FoundationEssentials
import RunLoopCalendar

/// Reads a line of the table from left to right: name, dates, options, command.
struct JobLine {
    private var rest: Substring

    /// The reason why a line is not a job, in words.
    struct Mistake: Error {
        let reason: String
    }

    static func job(_ line: some StringProtocol, in zone: TimeZone) throws(Mistake) -> Job {
        var line = JobLine(rest: Substring(line))
        return try line.job(in: zone)
    }

    private mutating func job(in zone: TimeZone) throws(Mistake) -> Job {
        let name = try name()
        let dates = try datesText()
        let options = try options()
        let command = rest.drop(while: \.isBlank)
        guard !command.isEmpty else { throw Mistake(reason: "there is no command") }
        return Job(
            name: name, dates: try Self.dates(dates, in: options.zone ?? zone), missed: options.missed ?? .once,
            limit: options.limit, command: String(command))
    }

    // MARK: Words

    /// Takes the next word; `nil` at the end of the line.
    private mutating func word() -> Substring? {
        rest = rest.drop(while: \.isBlank)
        let word = rest.prefix { !$0.isBlank }
        rest = rest[word.endIndex...]
        return word.isEmpty ? nil : word
    }

    private mutating func word(_ what: String) throws(Mistake) -> Substring {
        guard let word = word() else { throw Mistake(reason: "\(what) is missing") }
        return word
    }

    private mutating func name() throws(Mistake) -> String {
        let name = try word("the name")
        guard name.utf8.count <= 64, name.allSatisfy(\.isOfName) else {
            throw Mistake(reason: "\(name) is no name: at most 64 of the letters a to z, digits, and -_.")
        }
        return String(name)
    }

    // MARK: Dates

    private enum DatesText {
        case cron(String)
        case every(Substring)
    }

    private mutating func datesText() throws(Mistake) -> DatesText {
        let first = try word("when it is to run")
        if first == "every" { return .every(try word("how often it is to run")) }
        if first.hasPrefix("@") { return .cron(String(first)) }
        var fields = [first]
        for field in ["the hour", "the day of the month", "the month", "the day of the week"] {
            fields.append(try word(field))
        }
        return .cron(fields.joined(separator: " "))
    }

    private static func dates(_ text: DatesText, in zone: TimeZone) throws(Mistake) -> Dates {
        switch text {
        case .cron(let expression):
            do throws(CalendarSchedule.CronError) {
                return .calendar(try CalendarSchedule(cron: expression, in: zone))
            } catch {
                throw Mistake(reason: "\(error)")
            }
        case .every(let period):
            guard let seconds = TimeSpan(period)?.wholeSeconds, seconds > 0 else {
                throw Mistake(
                    reason: "every \(period): found \"\(period)\"; allowed: whole seconds, such as 90s or 10m")
            }
            return .every(seconds: seconds)
        }
    }

    // MARK: Options

    private struct Options {
        var limit: TimeSpan?
        var missed: Job.MissedDates?
        var zone: TimeZone?
    }

    /// Takes words such as `limit=30s`, up to the first word of another form, which begins the command.
    private mutating func options() throws(Mistake) -> Options {
        var options = Options()
        while true {
            let start = rest
            guard let word = word(), let equals = word.firstIndex(of: "="), equals > word.startIndex,
                word[..<equals].allSatisfy({ ("a"..."z").contains($0) })
            else {
                rest = start
                return options
            }
            try Self.set(word[..<equals], to: word[word.index(after: equals)...], in: &options)
        }
    }

    private static func set(_ name: Substring, to value: Substring, in options: inout Options) throws(Mistake) {
        func wrong(_ allowed: String) -> Mistake {
            Mistake(reason: "\(name): found \"\(value)\"; allowed: \(allowed)")
        }
        switch name {
        case "limit":
            guard let limit = TimeSpan(value), limit.duration > .zero else {
                throw wrong("a time, such as 90s or 1.5h")
            }
            options.limit = limit
        case "missed":
            guard let missed = Job.MissedDates(rawValue: String(value)) else {
                throw wrong(Job.MissedDates.allCases.map(\.rawValue).joined(separator: ", "))
            }
            options.missed = missed
        case "zone":
            guard let zone = TimeZone(identifier: String(value)) else { throw wrong("a zone, such as Europe/Berlin") }
            options.zone = zone
        default:
            throw Mistake(
                reason: "there is no option \(name); a command that begins with \(name)= is written env \(name)=…")
        }
    }
}

extension Character {
    fileprivate var isBlank: Bool { self == " " || self == "\t" }
    fileprivate var isOfName: Bool { isASCII && (isLetter || isNumber) || self == "-" || self == "_" || self == "." }
}
