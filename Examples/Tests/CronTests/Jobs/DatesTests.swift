import FoundationEssentials
import RunLoopCalendar
import RunLoopKit
import Testing

@testable import Cron

private typealias WallTime = RunLoop.WallTime

@Suite("Dates of jobs, and times as people write them")
struct DatesTests {
    @Test("an interval in seconds is counted from 1970, also backwards, and ends with the calendar")
    func every() {
        let dates = Dates.every(seconds: 600)
        func next(_ nanoseconds: Int64) -> Int64? {
            dates.next(after: WallTime(nanoseconds: nanoseconds)).map { $0.nanoseconds / 1_000_000_000 }
        }
        #expect(next(0) == 600)
        #expect(next(599_999_999_999) == 600)
        #expect(next(600_000_000_000) == 1_200)
        #expect(next(600_000_000_001) == 1_200)
        #expect(next(-1) == 0)
        #expect(next(-600_000_000_000) == 0)
        #expect(next(-600_000_000_001) == -600)
        #expect(next(Int64.max - 1) == nil)
    }

    @Test("a night with a gap and a night with an hour that comes twice have one 02:30 each")
    func nights() throws {
        let berlin = TimeZone(identifier: "Europe/Berlin")!
        let dates = Dates.calendar(try CalendarSchedule(cron: "30 2 * * *", in: berlin))
        func next(_ count: Int, after seconds: Int64) -> [String] {
            var time = WallTime(secondsSince1970: seconds)
            return (0..<count).map { _ in
                time = dates.next(after: time)!
                return time.description
            }
        }
        #expect(
            next(3, after: 1_774_656_000) == ["2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"])
        #expect(
            next(3, after: 1_792_800_000) == ["2026-10-24T00:30:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"])
    }

    @Test("equal dates have equal texts, and others other ones")
    func texts() throws {
        let (berlin, paris) = (TimeZone(identifier: "Europe/Berlin")!, TimeZone(identifier: "Europe/Paris")!)
        func text(_ cron: String, _ zone: TimeZone) throws -> String {
            Dates.calendar(try CalendarSchedule(cron: cron, in: zone)).description
        }
        #expect(try text("0 0 * * *", berlin) == text("@daily", berlin))
        #expect(try text("0 0 * * *", berlin) != text("0 0 * * *", paris))
        #expect(Dates.every(seconds: 60).description == "every 60s")
    }

    @Test(
        "a time is a number and a unit",
        arguments: [
            ("250ms", .milliseconds(250)), ("30s", .seconds(30)), ("1.5h", .seconds(5_400)), ("10m", .seconds(600)),
            ("2d", .seconds(172_800)), ("0s", .zero), ("", nil), ("s", nil), ("10", nil), ("-1s", nil), ("1e3s", nil),
            ("1 s", nil), ("1w", nil), ("1..5s", nil), ("99999999999999999d", nil),
        ] as [(String, Duration?)])
    func times(text: String, duration: Duration?) {
        #expect(TimeSpan(text)?.duration == duration)
    }
}
