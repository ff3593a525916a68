import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@testable import RunLoopCore

@Suite("Cadence")
struct CadenceTests {
    @Test("a million periods of a sixtieth of a second accumulate no error")
    func millionPeriods() {
        let period = Duration.seconds(1) / 60
        let (seconds, attoseconds) = period.components
        let exact = Int128(seconds) * 1_000_000_000_000_000_000 + Int128(attoseconds)
        var cadence = Cadence(anchor: ns(0), period: period)
        var wrong = 0
        for index in 0..<1_000_000 {
            if Int128(cadence.date.nanoseconds) != exact * Int128(index) / 1_000_000_000 { wrong += 1 }
            cadence.advance(past: cadence.date)
        }
        #expect(wrong == 0)
        #expect(cadence.index == 1_000_000)
        #expect(cadence.date == ns(16_666_666_666_666))
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
            let attoseconds = Int64.random(in: 1...3_000_000_000_000, using: &generator)
            let period = Duration(secondsComponent: 0, attosecondsComponent: attoseconds)
            let anchor = Int64.random(in: -1_000_000...1_000_000, using: &generator)
            let now = ns(anchor + Int64.random(in: 0...300_000, using: &generator))
            var cadence = Cadence(anchor: ns(anchor), period: period)
            cadence.advance(past: now)
            var index: Int128 = 1
            if attoseconds >= 1_000_000_000 {
                let elapsed = Int128(now.nanoseconds - anchor)
                while Int128(attoseconds) * index / 1_000_000_000 <= elapsed { index += 1 }
                #expect(Int128(cadence.index) == index, "seed \(seed), anchor \(anchor), period \(period), now \(now)")
            }
            #expect(cadence.date > now, "seed \(seed), anchor \(anchor), period \(period), now \(now)")
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
        var cadence = Cadence(anchor: .distantPast, period: .microseconds(100))
        // 2^63 ns are 92,233,720,368,547 periods of 100 µs and 75,808 ns.
        #expect(cadence.fire(at: ns(0)) == 92_233_720_368_547)
        cadence.advance(past: ns(0))
        #expect(cadence.date == ns(100_000 - 75_808))
    }

    @Test("dates that have passed are counted once, however they are asked for")
    func counting() {
        var cadence = Cadence(anchor: ms(10), period: .milliseconds(10))
        #expect(cadence.fire(at: ms(10)) == 0)
        cadence.advance(past: ms(10))
        #expect(cadence.date == ms(20))
        #expect(cadence.fire(at: ms(59)) == 3)
        cadence.advance(past: ms(75))
        #expect(cadence.date == ms(80))
        #expect(cadence.fire(at: ms(80)) == 2)
        cadence.restart(at: ms(105))
        #expect(cadence.date == ms(105))
        #expect(cadence.fire(at: ms(106)) == 0)
    }

    @Test(
        "a grid with more dates than can be counted goes on",
        arguments: [
            (RunLoop.Instant.distantPast, Duration.nanoseconds(1)),
            (RunLoop.Instant(nanoseconds: 0), Duration(secondsComponent: 0, attosecondsComponent: 1)),
        ])
    func uncountable(anchor: RunLoop.Instant, period: Duration) {
        var cadence = Cadence(anchor: anchor, period: period)
        var now = RunLoop.Instant(nanoseconds: 20_000_000_000)
        for _ in 0..<3 {
            #expect(cadence.fire(at: now) >= 0)
            cadence.advance(past: now)
            now = now + .seconds(1)
        }
    }
}
