import FoundationEssentials
import RunLoopCalendar
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

/// A schedule that counts its queries.
private final class Counted: WallSchedule {
    let base: CalendarSchedule
    private let count = Counter()

    init(_ base: CalendarSchedule) {
        self.base = base
    }

    var questions: Int { count.value }

    func next(after time: RunLoop.WallTime) -> RunLoop.WallTime? {
        count.add()
        return base.next(after: time)
    }
}

/// A clock that jumps, as on a board without a battery, which begins in 1970 and learns the time later.
@Suite("A clock that jumps by decades")
struct ClockJumpTests {
    private static let lines = [
        "* * * * *", "*/15 8-17 * * mon-fri", "30 2 * * *", "0 * * * *", "17 3 1,15 * *", "0 0 29 2 *",
    ]

    @Test("a calendar's timer takes one step, and its last date is the last one before now", arguments: lines)
    func oneStep(line: String) throws {
        let berlin = TimeZone(identifier: "Europe/Berlin")!
        let now = time("2026-11-27T09:41:07Z")
        for missedDates in [WallTimer.MissedDates.runOnce, .skip, .runEach] {
            let schedule = Counted(try CalendarSchedule(cron: line, in: berlin))
            withSimulation(startingAt: RunLoop.WallTime(secondsSince1970: 10)) { simulation in
                var fires: [RunLoop.WallTime] = []
                let timer = WallTimer(schedule) { fires.append($0.fireDate!) }
                timer.missedDates = missedDates
                simulation.loop.add(timer, forMode: .default)
                let first = timer.fireDate!
                simulation.wallTime = now
                // The first pass learns of the jump.
                for _ in 0..<2 { simulation.loop.poll() }
                #expect(schedule.questions < 2_000)
                let last = missedDates == .runEach ? first : timer.lastDate!
                let isShownLate = now - last > timer.grace
                #expect(fires == (missedDates == .skip ? (isShownLate ? [] : [last]) : [first]))
                #expect(schedule.base.next(after: last - .nanoseconds(1)) == last)
                if missedDates != .runEach { #expect(schedule.base.next(after: last) == timer.fireDate) }
                #expect((timer.fireDate! > now) == (missedDates != .runEach))
            }
        }
    }

    @Test("after a step back a calendar's earlier dates come again, and the last one alone does not")
    func stepBack() {
        withSimulation(startingAt: time("2026-11-27T00:00:00Z")) { simulation in
            var fires: [String] = []
            let schedule = CalendarSchedule.daily(at: TimeOfDay(hour: 6), in: .gmt)
            simulation.loop.add(WallTimer(schedule) { fires.append("\($0.fireDate!)") }, forMode: .default)
            simulation.advance(by: .seconds(7 * 3600))
            simulation.wallTime = time("2026-11-27T05:00:00Z")
            simulation.advance(by: .seconds(86_400))
            #expect(simulation.wallTime == time("2026-11-28T05:00:00Z") && fires == ["2026-11-27T06:00:00Z"])
            simulation.wallTime = time("2026-11-26T05:00:00Z")
            simulation.advance(by: .seconds(86_400))
            #expect(fires == ["2026-11-27T06:00:00Z", "2026-11-26T06:00:00Z"])
        }
    }
}
