@_spi(Ports) import RunLoopKit
@_spi(Ports) import RunLoopSimulation
import TestSupport
import Testing

private typealias WallTime = RunLoop.WallTime

/// A schedule at a fixed interval of seconds since 1970.
private struct Every: WallSchedule {
    let seconds: Int64

    func next(after time: RunLoop.WallTime) -> RunLoop.WallTime? {
        WallTime(secondsSince1970: (time.secondsSince1970 / seconds + 1) * seconds)
    }
}

/// A schedule that fires each minute, and counts its queries.
private final class Counted: WallSchedule {
    private let count = Counter()

    var questions: Int { count.value }

    func next(after time: RunLoop.WallTime) -> RunLoop.WallTime? {
        count.add()
        return Every(seconds: 60).next(after: time)
    }
}

private struct SingleFuture: WallSchedule {
    func next(after time: RunLoop.WallTime) -> RunLoop.WallTime? { .distantFuture }
}

private let hour: Int64 = 3600
private let start = WallTime(secondsSince1970: 1_000 * 24 * hour)

private func at(_ hours: Double) -> RunLoop.WallTime { start + .milliseconds(Int64((hours * 3_600_000).rounded())) }

@Suite("Wall timers")
struct WallTimerTests {
    /// The calls of an hourly timer, as `date at time missed n`.
    private final class Fires {
        private(set) var lines: [String] = []
        func note(_ timer: WallTimer, _ simulation: Simulation) {
            let hours = { (time: RunLoop.WallTime) in
                "\(Double((time.nanoseconds - start.nanoseconds) / 1_000_000) / 3_600_000)"
            }
            lines.append("\(hours(timer.fireDate!)) at \(hours(simulation.wallTime)) missed \(timer.missedFires)")
        }
    }

    private func hourly(
        _ missedDates: WallTimer.MissedDates = .runOnce, _ body: (Simulation, WallTimer) -> Void
    ) -> [String] {
        let fires = Fires()
        withSimulation(startingAt: start) { simulation in
            let timer = WallTimer(Every(seconds: hour)) { fires.note($0, simulation) }
            timer.missedDates = missedDates
            simulation.loop.add(timer, forMode: .default)
            body(simulation, timer)
            simulation.loop.checkInvariants()
        }
        return fires.lines
    }

    @Test("A timer fires when the wall clock shows its date, and a simulation starts at the wall time it was given")
    func fires() {
        let lines = hourly { simulation, timer in
            #expect(simulation.wallTime == start)
            #expect(simulation.loop.wallTime == start)
            #expect(timer.fireDate == at(1))
            simulation.advance(by: .seconds(3 * hour))
            #expect(timer.fireDate == at(4))
            #expect(simulation.now == RunLoop.Instant(nanoseconds: 3 * hour * 1_000_000_000))
        }
        #expect(lines == ["1.0 at 1.0 missed 0", "2.0 at 2.0 missed 0", "3.0 at 3.0 missed 0"])
    }

    @Test("A clock that is set forward passes over dates: the timer fires once, for each, or not")
    func setForward() {
        func lines(_ missedDates: WallTimer.MissedDates, to hours: Double) -> [String] {
            hourly(missedDates) { simulation, _ in
                simulation.loop.perform(at: RunLoop.Instant(nanoseconds: 1_800_000_000_000)) {
                    simulation.wallTime = at(hours)
                }
                simulation.advance(by: .seconds(hour))
            }
        }
        #expect(lines(.runOnce, to: 3.25) == ["1.0 at 3.25 missed 2"])
        #expect(
            lines(.runEach, to: 3.25) == [
                "1.0 at 3.25 missed 0", "2.0 at 3.25 missed 0", "3.0 at 3.25 missed 0",
            ])
        #expect(lines(.skip, to: 3.25) == [])
        #expect(lines(.skip, to: 3.01) == ["3.0 at 3.01 missed 2"])
        #expect(lines(.runOnce, to: 3.75) == ["1.0 at 3.75 missed 2", "4.0 at 4.0 missed 0"])
        #expect(lines(.skip, to: 3.75) == ["4.0 at 4.0 missed 3"])
    }

    @Test("A timer given the last date of another continues from that date, and does not repeat it")
    func goesOn() {
        func lines(after hours: Double, _ missedDates: WallTimer.MissedDates = .runOnce, at now: Double) -> [String] {
            let fires = Fires()
            withSimulation(startingAt: at(now)) { simulation in
                let timer = WallTimer(Every(seconds: hour), after: at(hours)) { fires.note($0, simulation) }
                timer.missedDates = missedDates
                #expect(timer.lastDate == at(hours))
                simulation.loop.add(timer, forMode: .default)
                simulation.advance(by: .seconds(hour))
                let next = at(now.rounded(.down) + 1)
                #expect(timer.lastDate == next)
                timer.invalidate()
            }
            return fires.lines
        }
        #expect(lines(after: 1, at: 1.5) == ["2.0 at 2.0 missed 0"])
        #expect(lines(after: 1, at: 3.5) == ["2.0 at 3.5 missed 1", "4.0 at 4.0 missed 0"])
        #expect(
            lines(after: 1, .runEach, at: 3.5) == ["2.0 at 3.5 missed 0", "3.0 at 3.5 missed 0", "4.0 at 4.0 missed 0"])
        #expect(lines(after: 1, .skip, at: 3.5) == ["4.0 at 4.0 missed 2"])
        #expect(lines(after: 2, at: 1.5) == [])
        #expect(lines(after: 3, at: 1.5) == ["2.0 at 2.0 missed 0"])
        // The clock was wrong before.
        #expect(lines(after: 5, at: 1.5) == ["2.0 at 2.0 missed 0"])
    }

    @Test("The count of missed dates stays until the next fire")
    func countStays() {
        let lines = hourly(.skip) { simulation, timer in
            simulation.wallTime = at(2.01)
            simulation.advance(by: .seconds(1))
            #expect(timer.missedFires == 1)
            simulation.wallTime = at(5.5)
            simulation.advance(by: .seconds(1))
            #expect(timer.missedFires == 1)
            simulation.advance(by: .seconds(hour))
            #expect(timer.missedFires == 3)
        }
        #expect(lines == ["2.0 at 2.01 missed 1", "6.0 at 6.0 missed 3"])
    }

    @Test("A thread that ends just after the clock was set lets the others continue")
    func endsMeanwhile() {
        withSimulation(startingAt: start) { simulation in
            let thread = LoopThread { loop in
                loop.add(WallTimer(at: at(9)) { _ in }, forMode: .common)
            }
            simulation.yield()
            simulation.wallTime = at(1)
            thread.stop()
            thread.join()
            #expect(simulation.runUntilIdle() == .done)
        }
    }

    @Test("After a sleep of the machine dates are passed over as well, and the loop's own time stands still meanwhile")
    func machineSleeps() {
        let lines = hourly { simulation, _ in
            simulation.advance(by: .seconds(hour / 2))
            simulation.sleepMachine(for: .seconds(24 * hour))
            #expect(simulation.now == RunLoop.Instant(nanoseconds: 1_800_000_000_000))
            simulation.advance(by: .seconds(1))
        }
        #expect(lines == ["1.0 at 24.5 missed 23"])
    }

    @Test("A clock that is set back by less than two dates does not repeat the last one")
    func setBack() {
        let lines = hourly { simulation, timer in
            simulation.advance(by: .seconds(2 * hour + 600))
            simulation.wallTime = at(1.01)
            #expect(timer.fireDate == at(3))
            simulation.advance(by: .seconds(2 * hour))
        }
        #expect(lines == ["1.0 at 1.0 missed 0", "2.0 at 2.0 missed 0", "3.0 at 3.0 missed 0"])
    }

    @Test("A timer that waits when the clock is set back further looks at the present time, and is not silent for long")
    func setBackFurther() {
        let minutely = withSimulation(startingAt: start) { simulation in
            var fires: [RunLoop.WallTime] = []
            let timer = WallTimer(Every(seconds: 60)) { fires.append($0.fireDate!) }
            simulation.loop.add(timer, forMode: .default)
            simulation.advance(by: .seconds(3 * hour + 30))
            fires = []
            simulation.wallTime = simulation.wallTime - .seconds(2 * hour)
            simulation.advance(by: .seconds(60))
            return fires
        }
        #expect(minutely == [at(1) + .seconds(60)])
        let lines = hourly { simulation, _ in
            simulation.advance(by: .seconds(2 * hour + 600))
            simulation.wallTime = at(0.5)
            simulation.advance(by: .seconds(3 * hour))
        }
        #expect(lines.dropFirst(2) == ["1.0 at 1.0 missed 0", "2.0 at 2.0 missed 0", "3.0 at 3.0 missed 0"])
    }

    @Test("After any step back, the next date is one that the clock has not shown, or lies within two periods")
    func randomSteps() {
        for seed in 0..<50 as Range<UInt64> {
            var numbers = SeededNumbers(seed: seed)
            withSimulation(startingAt: start) { simulation in
                var last: RunLoop.WallTime?
                let timer = WallTimer(Every(seconds: hour)) { timer in
                    #expect(timer.fireDate != last && simulation.wallTime >= timer.fireDate!, "seed \(seed)")
                    last = timer.fireDate
                }
                simulation.loop.add(timer, forMode: .default)
                for _ in 0..<40 {
                    simulation.advance(by: .seconds(Int64.random(in: 0...3 * hour, using: &numbers)))
                    let step = Int64.random(in: -12 * hour...hour, using: &numbers)
                    simulation.wallTime = simulation.wallTime + .seconds(step)
                    simulation.advance(by: .zero)
                    let silence = timer.fireDate! - simulation.wallTime
                    #expect(silence <= .seconds(2 * hour), "seed \(seed): \(silence)")
                }
            }
        }
    }

    @Test("A jump by decades is one step, and misses are counted up to a thousand", arguments: [false, true])
    func decades(sleeps: Bool) {
        for missedDates in [WallTimer.MissedDates.runOnce, .skip] {
            let schedule = Counted()
            withSimulation(startingAt: RunLoop.WallTime(secondsSince1970: 30)) { simulation in
                var fires: [String] = []
                let timer = WallTimer(schedule) { fires.append("\($0.fireDate!) missed \($0.missedFires)") }
                timer.missedDates = missedDates
                simulation.loop.add(timer, forMode: .default)
                simulation.advance(by: .seconds(1))
                // 2026, and 45 seconds after a minute.
                let now = RunLoop.WallTime(secondsSince1970: 29_833_331 * 60 + 45)
                if sleeps {
                    simulation.sleepMachine(for: now - simulation.wallTime)
                } else {
                    simulation.wallTime = now
                }
                simulation.advance(by: .seconds(1))
                let first = missedDates == .runOnce ? RunLoop.WallTime(secondsSince1970: 60) : now - .seconds(45)
                #expect(fires == ["\(first) missed 1000"])
                #expect(timer.lastDate == now - .seconds(45) && timer.fireDate == now + .seconds(15))
                #expect(schedule.questions < 2_000)
            }
        }
    }

    @Test("Dates that are skipped in a jump by decades are counted up to a thousand, with those missed before")
    func skippedDecades() {
        withSimulation(startingAt: start) { simulation in
            var missed: [Int] = []
            let timer = WallTimer(Every(seconds: 60)) { missed.append($0.missedFires) }
            (timer.missedDates, timer.grace) = (.skip, .zero)
            simulation.loop.add(timer, forMode: .default)
            for _ in 0..<3 {
                simulation.wallTime = simulation.wallTime + .seconds(600 * 60 + 1)
                simulation.advance(by: .seconds(1))
            }
            #expect(missed == [])
            simulation.advance(by: .seconds(60))
            #expect(missed == [1000])
        }
    }

    @Test("A clock that is set back by days shows a new time, which counts")
    func corrected() {
        let lines = hourly { simulation, _ in
            simulation.wallTime = at(-24.5)
            simulation.advance(by: .seconds(hour))
        }
        #expect(lines == ["-24.0 at -24.0 missed 0"])
    }

    @Test("Dates that have come before the last one come again")
    func correctedBetweenDates() {
        let lines = hourly { simulation, _ in
            simulation.advance(by: .seconds(12 * hour + hour / 2))
            simulation.wallTime = at(9.4)
            simulation.advance(by: .seconds(3 * hour))
        }
        #expect(lines.dropFirst(12) == ["10.0 at 10.0 missed 0", "11.0 at 11.0 missed 0", "12.0 at 12.0 missed 0"])
    }

    @Test("Several small steps together lead back as far as one")
    func severalSteps() {
        let lines = hourly { simulation, _ in
            simulation.advance(by: .seconds(12 * hour + hour / 4))
            simulation.wallTime = at(11.5)
            simulation.advance(by: .seconds(hour / 4))
            simulation.wallTime = at(10.9)
            simulation.advance(by: .seconds(2 * hour))
        }
        #expect(lines.dropFirst(12) == ["11.0 at 11.0 missed 0", "12.0 at 12.0 missed 0"])
    }

    @Test("A clock that is set back while its timer is in no loop shows a new time")
    func correctedWhileRemoved() {
        let lines = hourly { simulation, timer in
            simulation.advance(by: .seconds(12 * hour + hour / 2))
            simulation.loop.remove(timer, forMode: .default)
            simulation.wallTime = at(9.4)
            simulation.loop.add(timer, forMode: .default)
            simulation.advance(by: .seconds(hour))
        }
        #expect(lines.dropFirst(12) == ["10.0 at 10.0 missed 0"])
    }

    @Test("A timer never fires before the clock shows its date, even if the clock is set back at that moment")
    func neverEarly() {
        let lines = hourly { simulation, _ in
            simulation.loop.perform(at: RunLoop.Instant(nanoseconds: hour * 1_000_000_000)) {
                simulation.wallTime = at(0.75)
            }
            simulation.advance(by: .seconds(2 * hour))
        }
        // The timer was made before the block, and fires first.
        #expect(lines.first == "1.0 at 1.0 missed 0")
        let late = hourly { simulation, _ in
            simulation.loop.perform(at: RunLoop.Instant(nanoseconds: hour * 1_000_000_000 - 1)) {
                simulation.wallTime = at(0.75)
            }
            simulation.advance(by: .seconds(2 * hour))
        }
        #expect(late == ["1.0 at 1.0 missed 0"])
    }

    @Test(
        "With a clock that drifts, a timer fires when that clock shows the date",
        arguments: [-200_000, 30_000, 999_999_999] as [Int64])
    func drifts(billionths: Int64) {
        let lines = hourly { simulation, _ in
            simulation.setWallClockDrift(billionths: billionths)
            while simulation.wallTime < at(3) { simulation.advance(by: .seconds(60)) }
        }
        let early = lines.prefix(3).filter { line in
            let words = line.split(separator: " ")
            return Double(words[2])! < Double(words[0])!
        }
        #expect(lines.count == 3 && early.isEmpty, "\(billionths): \(lines)")
        #expect(lines.first?.hasPrefix("1.0 at 1.0") == true)
    }

    @Test("Dates that pass while another mode runs are missed")
    func otherMode() {
        let lines = hourly { simulation, _ in
            simulation.drag(
                from: RunLoop.Instant(nanoseconds: 0), until: RunLoop.Instant(nanoseconds: 9_000_000_000_000))
            simulation.advance(by: .seconds(3 * hour))
        }
        #expect(lines == ["1.0 at 2.5 missed 1", "3.0 at 3.0 missed 0"])
    }

    @Test("A timer of one date fires once, at once if the date has passed, and is invalid then")
    func singleDate() {
        withSimulation(startingAt: start) { simulation in
            var fired: [Double] = []
            let timers = [at(-1), at(1)].map { date in
                WallTimer(at: date) { _ in fired.append((simulation.wallTime - start) / .seconds(hour)) }
            }
            for timer in timers { simulation.loop.add(timer, forMode: .default) }
            simulation.advance(by: .seconds(hour / 2))
            simulation.sleepMachine(for: .seconds(hour / 4))
            simulation.advance(by: .seconds(hour))
            #expect(fired == [0, 1])
            #expect(timers.allSatisfy { !$0.isValid && $0.fireDate == nil })
        }
    }

    @Test("An invalidation in a callback holds, and a timer that is taken out and added again continues")
    func changedWithin() {
        let lines = hourly { simulation, timer in
            simulation.advance(by: .seconds(hour))
            simulation.loop.remove(timer, forMode: .default)
            simulation.advance(by: .seconds(2 * hour))
            simulation.loop.add(timer, forMode: .default)
            simulation.advance(by: .seconds(hour / 2))
            simulation.loop.perform(at: simulation.now + .seconds(hour)) { timer.invalidate() }
            simulation.advance(by: .seconds(5 * hour))
            #expect(!timer.isValid)
        }
        #expect(lines == ["1.0 at 1.0 missed 0", "2.0 at 3.0 missed 1", "4.0 at 4.0 missed 0"])
    }

    @Test("Every thread's timers are notified when the clock is set")
    func threads() {
        for _ in 0..<20 {
            withSimulation(traced: true, startingAt: start) { simulation in
                let threads = ["a", "b"].map { name in
                    LoopThread(name: name) { loop in
                        loop.add(
                            WallTimer(Every(seconds: hour)) { timer in
                                simulation.note("\(name) fires at \(simulation.wallTime) missed \(timer.missedFires)")
                            }, forMode: .common)
                    }
                }
                simulation.advance(by: .seconds(60))
                simulation.wallTime = at(5.5)
                simulation.advance(by: .seconds(60))
                let lines = simulation.trace.filter { $0.contains("fires at") }
                #expect(lines.count == 2 && lines.allSatisfy { $0.hasSuffix("missed 4") }, "\(lines)")
                withExtendedLifetime(threads) {}
            }
        }
    }

    @Test("A wall timer by itself keeps a run going; the watch on the clock does not")
    func keepsAlive() {
        withSimulation(startingAt: start) { simulation in
            let timer = WallTimer(at: at(2)) { _ in }
            simulation.loop.add(timer, forMode: .default)
            #expect(simulation.loop.run(in: .default) == .finished)
            #expect(simulation.wallTime == at(2))
            #expect(simulation.runUntilIdle() == .done)
        }
    }

    @Test("A delay that a name decides is stable, below its limit, and spread evenly over names")
    func delayed() {
        let limit = Duration.seconds(900)
        let delays = (0..<9000).map { number in
            let schedule = Every(seconds: hour).delayed(upTo: limit, by: "backup on host \(number)")
            let first = schedule.next(after: start)!
            #expect(schedule.next(after: first) == first + .seconds(hour))
            #expect(schedule.next(after: first - .nanoseconds(1)) == first)
            // The delay of the date `start`, or the time until the next delayed date.
            return (first.nanoseconds - start.nanoseconds) % (hour * 1_000_000_000)
        }
        #expect(delays.allSatisfy { (0..<900_000_000_000).contains($0) })
        for tenth in 0..<10 as Range<Int64> {
            let count = delays.filter { $0 / 90_000_000_000 == tenth }.count
            #expect((800...1000).contains(count))
        }
        // Equal in each process and version.
        let fixed = Every(seconds: hour).delayed(upTo: limit, by: "backup").next(after: start)!
        #expect("\(fixed)" == "1972-09-27T00:00:27.023482144Z")
    }

    @Test("A timer of a delayed schedule fires at its dates, and continues from its last one")
    func delayedTimer() {
        let schedule = Every(seconds: hour).delayed(upTo: .seconds(600), by: "backup")
        let first = schedule.next(after: start)!
        withSimulation(startingAt: start) { simulation in
            var fires: [RunLoop.WallTime] = []
            let timer = WallTimer(schedule) { _ in fires.append(simulation.wallTime) }
            simulation.loop.add(timer, forMode: .default)
            simulation.advance(by: .seconds(2 * hour))
            #expect(fires == [first, first + .seconds(hour)])
            let next = WallTimer(schedule, after: timer.lastDate) { _ in }
            simulation.loop.add(next, forMode: .default)
            #expect(next.fireDate == first + .seconds(2 * hour))
        }
        #expect(WallTime.distantFuture == SingleFuture().delayed(upTo: .seconds(1), by: "x").next(after: start))
    }

    @Test("In the real world a timer is never early")
    func real() {
        let loop = RunLoop.current
        for delay in [0, 1, 7, 30] {
            let date = loop.wallTime + .milliseconds(delay)
            var fired: RunLoop.WallTime?
            loop.add(WallTimer(at: date) { _ in fired = loop.wallTime }, forMode: "wall")
            loop.run(in: "wall")
            #expect(fired.map { $0 >= date } == true)
        }
    }
}

@Suite("Wall time")
struct WallTimeTests {
    @Test("a wall time is written in UTC")
    func description() {
        #expect("\(RunLoop.WallTime(secondsSince1970: 0))" == "1970-01-01T00:00:00Z")
        #expect("\(RunLoop.WallTime(secondsSince1970: 978_307_200))" == "2001-01-01T00:00:00Z")
        #expect("\(RunLoop.WallTime(nanoseconds: 951_825_599_120_000_000))" == "2000-02-29T11:59:59.120Z")
        #expect("\(RunLoop.WallTime(nanoseconds: -1))" == "1969-12-31T23:59:59.999999999Z")
        #expect("\(RunLoop.WallTime.distantFuture)" == "distantFuture")
        #expect("\(RunLoop.WallTime(nanoseconds: .min + 1))" == "1677-09-21T00:12:43.145224193Z")
        #expect("\(RunLoop.WallTime(nanoseconds: .max - 1))" == "2262-04-11T23:47:16.854775806Z")
    }

    @Test("sums and differences of wall times saturate")
    func arithmetic() {
        let time = RunLoop.WallTime(secondsSince1970: 100)
        #expect(time + .seconds(5) == RunLoop.WallTime(nanoseconds: 105_000_000_000))
        #expect(time - .seconds(105) == RunLoop.WallTime(secondsSince1970: -5))
        #expect(time - RunLoop.WallTime(secondsSince1970: 40) == .seconds(60))
        #expect(RunLoop.WallTime(secondsSince1970: .max) == .distantFuture)
        #expect(RunLoop.WallTime.distantPast - .seconds(1) == .distantPast)
        #expect(RunLoop.WallTime(nanoseconds: -1).secondsSince1970 == -1)
        #expect(RunLoop.WallTime(nanoseconds: -1_000_000_000).secondsSince1970 == -1)
    }
}
