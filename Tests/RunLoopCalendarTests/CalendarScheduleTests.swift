import FoundationEssentials
import RunLoopCalendar
import RunLoopFoundation
import RunLoopKit
import Testing

@Suite("Dates of a calendar")
struct CalendarScheduleTests {
    @Test("the next date is the first one after a time", arguments: Line.plain)
    func plain(_ line: Line) { line.check() }

    @Test("a time that does not exist happens once, at the first moment after the gap", arguments: Line.gaps)
    func gaps(_ line: Line) { line.check() }

    @Test("a time that comes twice happens the first time only", arguments: Line.repetitions)
    func repetitions(_ line: Line) { line.check() }

    @Test("a schedule of every hour follows the time that passes", arguments: Line.everyHour)
    func everyHour(_ line: Line) { line.check() }

    @Test("offsets need not be whole hours or minutes", arguments: Line.offsets)
    func offsets(_ line: Line) { line.check() }

    @Test("an offset may have seconds")
    func secondsInOffsets() {
        // In Monrovia it was 44:30 earlier than in UTC, until the end of 6 January 1972.
        let zone = TimeZone(identifier: "Africa/Monrovia")!
        let start = "1972-01-05T12:00:00Z"
        #expect(
            dates(of: .daily(at: TimeOfDay(hour: 6), in: zone), after: start, count: 2)
                == ["1972-01-06T06:44:30Z", "1972-01-07T06:00:00Z"])
        #expect(
            dates(of: .daily(at: TimeOfDay(hour: 0, minute: 30), in: zone), after: start, count: 3)
                == ["1972-01-06T01:14:30Z", "1972-01-07T00:44:30Z", "1972-01-08T00:30:00Z"])
        #expect(
            dates(of: .hourly(atMinute: 0, in: zone), after: "1972-01-06T23:00:00Z", count: 3)
                == ["1972-01-06T23:44:30Z", "1972-01-07T01:00:00Z", "1972-01-07T02:00:00Z"])
    }

    @Test("a date is after the time, and a part of a second counts")
    func partsOfSeconds() {
        let schedule = CalendarSchedule.daily(at: TimeOfDay(hour: 6), in: .gmt)
        let six = time("2026-11-22T06:00:00Z")
        #expect(schedule.next(after: six - .nanoseconds(1)) == six)
        #expect(schedule.next(after: six) == six + .seconds(86_400))
        #expect(schedule.next(after: six + .nanoseconds(1)) == six + .seconds(86_400))
    }

    @Test("dates reach as far as wall times do")
    func ends() {
        for zone in ["GMT", "Europe/Berlin", "Pacific/Apia"].map({ TimeZone(identifier: $0)! }) {
            for schedule in [.daily(at: .midnight, in: zone), CalendarSchedule.hourly(atMinute: 0, in: zone)] {
                #expect(schedule.next(after: .distantFuture) == nil)
                #expect(schedule.next(after: .distantFuture - .seconds(1)) == nil)
                let first = schedule.next(after: .distantPast)
                #expect(first.map { $0 < .distantPast + .seconds(2 * 86_400) } == true)
                let last = schedule.next(after: .distantFuture - .seconds(2 * 86_400))
                #expect(last.map { $0 < .distantFuture } == true)
            }
        }
    }

    @Test("rare dates are found")
    func rare() throws {
        let leapSundays = try CalendarSchedule(cron: "0 0 29 2 */7", in: .gmt)
        #expect(
            dates(of: leapSundays, after: "2026-01-01T00:00:00Z", count: 4)
                == [2032, 2060, 2088, 2128].map { "\($0)-02-29T00:00:00Z" })
    }

    @Test("a schedule keeps the zone that was current when it was made")
    func currentZone() {
        let schedule = CalendarSchedule.daily(at: .midnight, in: .autoupdatingCurrent)
        #expect(schedule.timeZone == .current)
        #expect(schedule == .daily(at: .midnight))
    }

    @Test("equal dates that are written differently are equal")
    func equality() throws {
        let zone = TimeZone(identifier: "Asia/Kathmandu")!
        #expect(
            try CalendarSchedule(cron: "30 6 * * *", in: zone) == .daily(at: TimeOfDay(hour: 6, minute: 30), in: zone))
        #expect(
            try CalendarSchedule(cron: "0 0 * * mon,fri", in: zone)
                == .weekly(on: [.friday, .monday], at: .midnight, in: zone))
        #expect(try CalendarSchedule(cron: "0 0 7 * *", in: zone) == .monthly(onDay: 7, at: .midnight, in: zone))
        #expect(try CalendarSchedule(cron: "5,50 * * * *", in: zone) == .hourly(atMinute: 50, 5, in: zone))
        #expect(CalendarSchedule.daily(at: .midnight, in: zone) != .daily(at: .midnight, in: .gmt))
    }

    @Test("a schedule describes itself in lines of crontab")
    func description() {
        let zone = TimeZone(identifier: "Europe/Berlin")!
        let times = (TimeOfDay(hour: 18, minute: 30), TimeOfDay(hour: 6))
        #expect(
            "\(CalendarSchedule.daily(at: times.0, times.1, in: zone))" == "0 6 * * *; 30 18 * * * in Europe/Berlin")
        #expect(
            "\(CalendarSchedule.weekly(on: [.sunday, .saturday], at: times.1, in: zone))"
                == "0 6 * * 0,6 in Europe/Berlin")
        #expect("\(CalendarSchedule.hourly(atMinute: 0, 20, 40, in: zone))" == "*/20 * * * * in Europe/Berlin")
        #expect("\(TimeOfDay(hour: 6, minute: 5))" == "06:05")
        #expect(times.1 < times.0)
    }

    @Test("a schedule without a time is refused")
    func noTime() async {
        await #expect(processExitsWith: .failure) { _ = CalendarSchedule.daily() }
    }

    @Test("a schedule without a day is refused")
    func noDay() async {
        await #expect(processExitsWith: .failure) { _ = CalendarSchedule.weekly(on: [], at: .midnight) }
    }

    @Test("an invalid time of day is refused")
    func noTimeOfDay() async {
        await #expect(processExitsWith: .failure) { _ = TimeOfDay(hour: 24) }
        await #expect(processExitsWith: .failure) { _ = TimeOfDay(hour: 0, minute: 60) }
    }

    @Test("an invalid day of the month is refused")
    func noDayOfMonth() async {
        await #expect(processExitsWith: .failure) { _ = CalendarSchedule.monthly(onDay: 32, at: .midnight) }
    }
}

/// A schedule in a zone, and its dates after a time.
struct Line: CustomTestStringConvertible {
    let schedule: CalendarSchedule
    let start: String
    let expected: [String]

    /// Times are in UTC, without their seconds.
    init(_ cron: String, _ zone: String, after start: String, _ expected: String...) {
        self.init(try! CalendarSchedule(cron: cron, in: TimeZone(identifier: zone)!), after: start, expected)
    }

    init(_ schedule: CalendarSchedule, after start: String, _ expected: [String]) {
        self.schedule = schedule
        self.start = start
        self.expected = expected
    }

    var testDescription: String { "\(schedule) after \(start)" }

    func check() {
        #expect(dates(of: schedule, after: "\(start):00Z", count: expected.count) == expected.map { "\($0):00Z" })
    }

    static let plain = [
        Line(
            "0 6 * * *", "Europe/Berlin", after: "2026-11-22T04:59",
            "2026-11-22T05:00", "2026-11-23T05:00", "2026-11-24T05:00"),
        Line(
            "0 6 * * mon-fri", "America/New_York", after: "2026-11-20T11:00",
            "2026-11-23T11:00", "2026-11-24T11:00"),
        Line(
            "*/20 8-9 * * *", "UTC", after: "2026-12-31T08:30",
            "2026-12-31T08:40", "2026-12-31T09:00", "2026-12-31T09:20", "2026-12-31T09:40", "2027-01-01T08:00"),
        Line(
            "0 0 31 * *", "UTC", after: "2026-01-31T00:00",
            "2026-03-31T00:00", "2026-05-31T00:00", "2026-07-31T00:00"),
        Line("0 0 29 2 *", "UTC", after: "2096-02-29T00:00", "2104-02-29T00:00"),
        // Either day, because both are restricted: the 13th is a Sunday.
        Line(
            "0 0 13 * fri", "UTC", after: "2026-09-04T00:00",
            "2026-09-11T00:00", "2026-09-13T00:00", "2026-09-18T00:00"),
        // Both days, because one field begins with a star: 1, 13 and 25.
        Line(
            "0 0 */12 * fri", "UTC", after: "2026-01-01T00:00",
            "2026-02-13T00:00", "2026-03-13T00:00", "2026-05-01T00:00", "2026-09-25T00:00", "2026-11-13T00:00"),
        Line("@yearly", "UTC", after: "2026-01-01T00:00", "2027-01-01T00:00", "2028-01-01T00:00"),
        Line("@monthly", "UTC", after: "2026-01-01T00:00", "2026-02-01T00:00"),
        Line("@weekly", "UTC", after: "2026-11-22T00:00", "2026-11-29T00:00"),
        Line("@midnight", "UTC", after: "2026-11-22T00:00", "2026-11-23T00:00"),
        Line("@hourly", "UTC", after: "2026-11-22T23:00", "2026-11-23T00:00"),
        Line(
            .daily(at: TimeOfDay(hour: 18, minute: 30), TimeOfDay(hour: 6), in: .gmt), after: "2026-11-22T00:00",
            ["2026-11-22T06:00", "2026-11-22T18:30", "2026-11-23T06:00"]),
        Line(
            .weekly(on: [.saturday, .wednesday], at: TimeOfDay(hour: 1), in: .gmt), after: "2026-11-22T00:00",
            ["2026-11-25T01:00", "2026-11-28T01:00", "2026-12-02T01:00"]),
    ]

    static let gaps = [
        Line(
            "30 2 * * *", "Europe/Berlin", after: "2026-03-28T00:00",
            "2026-03-28T01:30", "2026-03-29T01:00", "2026-03-30T00:30"),
        // Two dates in the gap, and a regular one at its end.
        Line(
            "10,50 2-3 * * *", "Europe/Berlin", after: "2026-03-29T00:00",
            "2026-03-29T01:00", "2026-03-29T01:10", "2026-03-29T01:50", "2026-03-30T00:10"),
        Line(
            "0 2,3 * * *", "Europe/Berlin", after: "2026-03-29T00:00",
            "2026-03-29T01:00", "2026-03-30T00:00", "2026-03-30T01:00"),
        Line(
            "0 */2 * * *", "Europe/Berlin", after: "2026-03-28T22:00",
            "2026-03-28T23:00", "2026-03-29T01:00", "2026-03-29T02:00"),
        Line("30 2 * * *", "Europe/Berlin", after: "2026-03-29T01:00", "2026-03-30T00:30"),
        Line(
            "30 2 * * *", "America/New_York", after: "2026-03-07T00:00",
            "2026-03-07T07:30", "2026-03-08T07:00", "2026-03-09T06:30"),
        Line(
            "15 2 * * *", "Australia/Lord_Howe", after: "2026-10-02T00:00",
            "2026-10-02T15:45", "2026-10-03T15:30", "2026-10-04T15:15"),
        // Midnight does not exist.
        Line(
            "0 0 * * *", "America/Sao_Paulo", after: "2018-11-03T00:00",
            "2018-11-03T03:00", "2018-11-04T03:00", "2018-11-05T02:00"),
        Line(
            "0 0 * * *", "Africa/Cairo", after: "2010-04-28T12:00",
            "2010-04-28T22:00", "2010-04-29T22:00", "2010-04-30T21:00"),
        // A day, Friday the 30th, does not exist.
        Line(
            "0 6 * * *", "Pacific/Apia", after: "2011-12-29T12:00",
            "2011-12-29T16:00", "2011-12-30T10:00", "2011-12-30T16:00"),
        Line("0 6 * * fri", "Pacific/Apia", after: "2011-12-24T00:00", "2011-12-30T10:00", "2012-01-05T16:00"),
        Line("0 6 30 12 *", "Pacific/Apia", after: "2011-01-01T00:00", "2011-12-30T10:00", "2012-12-29T16:00"),
        // The midnights of the 30th and of the 31st.
        Line(
            "0 0 * * *", "Pacific/Apia", after: "2011-12-29T00:00",
            "2011-12-29T10:00", "2011-12-30T10:00", "2011-12-31T10:00"),
    ]

    static let repetitions = [
        Line(
            "30 2 * * *", "Europe/Berlin", after: "2026-10-24T00:00",
            "2026-10-24T00:30", "2026-10-25T00:30", "2026-10-26T01:30"),
        Line(
            "*/15 2 * * *", "Europe/Berlin", after: "2026-10-24T23:00",
            "2026-10-25T00:00", "2026-10-25T00:15", "2026-10-25T00:30", "2026-10-25T00:45", "2026-10-26T01:00"),
        // From within the second of the two hours.
        Line("30 2 * * *", "Europe/Berlin", after: "2026-10-25T01:00", "2026-10-26T01:30"),
        Line("0 2,3 * * *", "Europe/Berlin", after: "2026-10-25T01:30", "2026-10-25T02:00", "2026-10-26T01:00"),
        Line(
            "30 1 * * *", "America/New_York", after: "2026-10-31T00:00",
            "2026-10-31T05:30", "2026-11-01T05:30", "2026-11-02T06:30"),
        Line(
            "45 1 * * *", "Australia/Lord_Howe", after: "2026-04-03T00:00",
            "2026-04-03T14:45", "2026-04-04T14:45", "2026-04-05T15:15"),
        // The day before begins to end anew.
        Line(
            "30 23 * * *", "America/Sao_Paulo", after: "2018-02-17T00:00",
            "2018-02-17T01:30", "2018-02-18T01:30", "2018-02-19T02:30"),
        Line(
            "0 0 * * *", "America/Sao_Paulo", after: "2018-02-17T00:00",
            "2018-02-17T02:00", "2018-02-18T03:00", "2018-02-19T03:00"),
    ]

    static let everyHour = [
        Line(
            "30 * * * *", "Europe/Berlin", after: "2026-03-29T00:00",
            "2026-03-29T00:30", "2026-03-29T01:30", "2026-03-29T02:30"),
        Line(
            "30 0-23 * * *", "Europe/Berlin", after: "2026-10-25T00:00",
            "2026-10-25T00:30", "2026-10-25T01:30", "2026-10-25T02:30"),
        Line(
            "*/15 * * * *", "Australia/Lord_Howe", after: "2026-04-04T14:30",
            "2026-04-04T14:45", "2026-04-04T15:00", "2026-04-04T15:15", "2026-04-04T15:30"),
        Line("15 * * * *", "Australia/Lord_Howe", after: "2026-10-03T14:00", "2026-10-03T14:45", "2026-10-03T16:15"),
        Line("0 * * * *", "Pacific/Apia", after: "2011-12-30T08:00", "2011-12-30T09:00", "2011-12-30T10:00"),
        // Nothing on the day that does not exist.
        Line("0 * 30 12 *", "Pacific/Apia", after: "2011-12-29T00:00", "2012-12-29T10:00", "2012-12-29T11:00"),
        // The 17th ends twice.
        Line(
            "0 * 17 2 *", "America/Sao_Paulo", after: "2018-02-18T00:00",
            "2018-02-18T01:00", "2018-02-18T02:00", "2019-02-17T03:00"),
        Line(
            "0 * 29 2 *", "Europe/Berlin", after: "2096-03-01T00:00",
            "2104-02-28T23:00", "2104-02-29T00:00"),
    ]

    static let offsets = [
        Line("0 6 * * *", "Asia/Kathmandu", after: "2026-11-22T00:00", "2026-11-22T00:15", "2026-11-23T00:15"),
        Line("0 * * * *", "Asia/Kathmandu", after: "2026-11-22T00:00", "2026-11-22T00:15", "2026-11-22T01:15"),
        // From 5:30 to 5:45.
        Line(
            "0 0 * * *", "Asia/Kathmandu", after: "1985-12-30T12:00",
            "1985-12-30T18:30", "1985-12-31T18:30", "1986-01-01T18:15"),
        // Over the date line, to and fro: 23 hours come twice, and 24 do not exist.
        Line(
            "0 12 * * *", "Pacific/Kwajalein", after: "1969-09-29T00:00",
            "1969-09-29T01:00", "1969-09-30T01:00", "1969-10-02T00:00"),
        Line(
            "0 6 * * *", "Pacific/Kwajalein", after: "1993-08-20T00:00",
            "1993-08-20T18:00", "1993-08-21T12:00", "1993-08-21T18:00"),
    ]
}

func time(_ text: String) -> RunLoop.WallTime {
    RunLoop.WallTime(try! Date(text, strategy: .iso8601))
}

func dates(of schedule: CalendarSchedule, after start: String, count: Int) -> [String] {
    var time = time(start)
    return (0..<count).map { _ in
        guard let next = schedule.next(after: time) else { return "none" }
        time = next
        return "\(next)"
    }
}
