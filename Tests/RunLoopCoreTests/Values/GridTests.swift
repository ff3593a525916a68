import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@_spi(Ports) @testable import RunLoopCore

@Suite("The grid")
struct GridTests {
    @Test("a million periods of a sixtieth of a second accumulate no error")
    func millionPeriods() {
        let period = Duration.seconds(1) / 60
        let (seconds, attoseconds) = period.components
        let exact = Int128(seconds) * 1_000_000_000_000_000_000 + Int128(attoseconds)
        var (grid, fraction) = Grid.repeating(ns(0), period)
        var wrong = 0
        for index in 0..<1_000_000 {
            if Int128(grid.date.nanoseconds) != exact * Int128(index) / 1_000_000_000 { wrong += 1 }
            if grid.datesPassed(at: grid.date, fraction) != 0 { wrong += 1 }
            grid.advance(by: 1, &fraction)
        }
        #expect(wrong == 0)
        #expect(grid.date == ns(16_666_666_666_666))
    }

    @Test("a timer at sixty hertz fires 216,000 times in an hour, each time on its grid")
    func sixtyHertz() {
        withSimulation { simulation in
            let loop = simulation.loop
            var (fires, missed, late) = (0, 0, 0)
            let timer = Timer(fire: ns(0), interval: .seconds(1) / 60, repeats: true) { timer in
                if loop.now != timer.fireDate { late += 1 }
                fires += 1
                missed += timer.missedFires
            }
            loop.add(timer, forMode: .default)
            loop.run(in: .default, until: ms(3_600_000) - .milliseconds(1))
            #expect(fires == 216_000)
            #expect(missed == 0)
            #expect(late == 0)
            #expect(timer.fireDate == ns(3_599_999_999_999))
        }
    }

    @Test("a 0.0001 s timer that starved for an hour is back on its grid at once, 36 million periods on (R120)")
    func starvedForAnHour() {
        withSimulation { simulation in
            let loop = simulation.loop
            var fires: [(RunLoop.Instant, Int)] = []
            let timer = Timer(timeInterval: .microseconds(100), repeats: true) { timer in
                fires.append((loop.now, timer.missedFires))
            }
            loop.add(timer, forMode: .default)
            simulation.spend(.seconds(3600))
            loop.run(in: .default, until: loop.now + .microseconds(250))
            #expect(fires.map(\.0.nanoseconds) == [3_600_000_000_000, 3_600_000_100_000, 3_600_000_200_000])
            #expect(fires.map(\.1) == [35_999_999, 0, 0])
        }
    }

    @Test("skipping periods by division finds the very date that stepping finds")
    func divisionAgreesWithStepping() {
        let seed: UInt64 = 120
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<500 {
            let attoseconds = Int64.random(in: 1_000_000_000...3_000_000_000_000, using: &generator)
            let period = Duration(secondsComponent: 0, attosecondsComponent: attoseconds)
            let anchor = Int64.random(in: -1_000_000...1_000_000, using: &generator)
            var (grid, fraction) = Grid.repeating(ns(anchor), period)
            var index: Int128 = 0
            // In several leaps: each begins with the fraction left over from the one before.
            for _ in 0..<4 {
                let now = ns(grid.date.nanoseconds + Int64.random(in: 0...300_000, using: &generator))
                grid.advance(by: grid.datesPassed(at: now, fraction) + 1, &fraction)
                let elapsed = Int128(now.nanoseconds - anchor)
                while Int128(attoseconds) * index / 1_000_000_000 <= elapsed { index += 1 }
                let date = Int128(anchor) + Int128(attoseconds) * index / 1_000_000_000
                #expect(
                    Int128(grid.date.nanoseconds) == date,
                    "seed \(seed), anchor \(anchor), period \(period), now \(now)")
            }
        }
    }

    @Test("a huge interval saturates: the timer fires once, and then never")
    func hugeInterval() {
        for interval in [Duration.seconds(Int64.max), .seconds(Int64.max / 2), .nanoseconds(Int64.max)] {
            withSimulation { simulation in
                let loop = simulation.loop
                let timer = loop.timer(10) { _ in }
                timer.invalidate()
                let huge = Timer(fire: ms(10), interval: interval, repeats: true) { _ in }
                loop.add(huge, forMode: .default)
                #expect(loop.run(in: .default) == .starved)
                #expect(loop.statistics.fires == 1)
                #expect(huge.fireDate == .distantFuture)
                #expect(huge.isValid)
                loop.checkInvariants()
            }
        }
    }

    @Test("a first date that is too far away saturates")
    func hugeDelay() {
        withSimulation { simulation in
            simulation.spend(.seconds(1))
            let timer = Timer(timeInterval: .seconds(Int64.max), repeats: true) { _ in }
            #expect(timer.fireDate == .distantFuture)
        }
    }

    @Test("an anchor in the distant past fires once for all that was missed, and keeps its phase")
    func distantPastAnchor() {
        withSimulation { simulation in
            let loop = simulation.loop
            var fires: [(RunLoop.Instant, Int)] = []
            let timer = Timer(fire: .distantPast, interval: .seconds(1), repeats: true) { timer in
                fires.append((loop.now, timer.missedFires))
            }
            loop.add(timer, forMode: .default)
            loop.run(in: .default, until: ms(2000))
            // The distant past is 9,223,372,036.854775808 s before the start.
            #expect(fires.map(\.0.nanoseconds) == [0, 145_224_192, 1_145_224_192])
            #expect(fires.map(\.1) == [9_223_372_036, 0, 0])
        }
    }

    @Test("an anchor in the distant past with the shortest interval is no slower")
    func distantPastShortest() {
        var (grid, fraction) = Grid.repeating(.distantPast, .microseconds(100))
        // 2^63 ns are 92,233,720,368,547 periods of 100 µs and 75,808 ns.
        let passed = grid.datesPassed(at: ns(0), fraction)
        #expect(passed == 92_233_720_368_547)
        grid.advance(by: passed + 1, &fraction)
        #expect(grid.date == ns(100_000 - 75_808))
    }

    @Test("a period below a nanosecond counts as one")
    func belowNanosecond() {
        let (grid, fraction) = Grid.repeating(ns(0), Duration(secondsComponent: 0, attosecondsComponent: 1))
        #expect(grid.period == 1)
        #expect(fraction == nil)
    }

    @Test("a repeating timer with an interval below half a nanosecond keeps firing")
    func intervalBelowHalfNanosecond() {
        withSimulation { simulation in
            let loop = simulation.loop
            let tiny = Duration(secondsComponent: 0, attosecondsComponent: 400_000_000)
            var fires = 0
            let timer = Timer(fire: ns(10), interval: tiny, repeats: true) { timer in
                fires += 1
                if fires == 5 { timer.invalidate() }
            }
            #expect(timer.repeats)
            #expect(timer.timeInterval == .nanoseconds(1))
            loop.add(timer, forMode: .default)
            loop.run(in: .default, until: ms(1))
            #expect(fires == 5)
        }
    }

    @Test("a grid with more dates than can be counted continues")
    func uncountable() {
        var (grid, fraction) = Grid.repeating(.distantPast, .nanoseconds(1))
        var now = RunLoop.Instant(nanoseconds: 20_000_000_000)
        for _ in 0..<3 {
            let passed = grid.datesPassed(at: now, fraction)
            #expect(passed >= 0)
            grid.advance(by: passed.saturatingAdding(1), &fraction)
            now = now + .seconds(1)
        }
    }
}
