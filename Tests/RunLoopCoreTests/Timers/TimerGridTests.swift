import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@_spi(Ports) @testable import RunLoopCore

/// The times and the order in which timers fire.
@Suite("The grid of a timer")
struct TimerGridTests {
    @Test("a timer never fires early (R113)")
    func neverEarly() {
        withSimulation { simulation in
            let loop = simulation.loop
            var generator = SeededGenerator(seed: 113)
            var fires = 0
            for _ in 0..<500 {
                let date = ns(Int64.random(in: 0..<1_000_000_000, using: &generator))
                let timer = Timer(fire: date, interval: .zero, repeats: false) { timer in
                    #expect(loop.now == timer.fireDate)
                    fires += 1
                }
                loop.add(timer, forMode: .default)
            }
            loop.run(in: .default)
            #expect(fires == 500)
        }
    }

    @Test("a repeating timer keeps to its scheduled dates, regardless of how long its callbacks take (R114)")
    func noDrift() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.timer(7, every: 10) { timer in
                #expect(timer.missedFires == 0)
                log(loop.now.word)
                simulation.spend(.milliseconds(9))
            }
            loop.run(in: .default, until: ms(60))
            #expect(log.text == "7 17 27 37 47 57")
        }
    }

    @Test("a repeating timer keeps its grid after a long handler, and counts missed fires (R115, R116)")
    func longCallback() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.timer(100, every: 100) { timer in
                log("\(loop.now.word)/\(timer.missedFires)")
                if loop.now == ms(100) { simulation.spend(.milliseconds(230)) }
            }
            loop.run(in: .default, until: ms(550))
            #expect(log.text == "100/0 400/2 500/0")
        }
    }

    @Test("a grid point exactly at the end of the callback is skipped too (R116)")
    func endsOnGridPoint() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.timer(100, every: 100) { timer in
                log("\(loop.now.word)/\(timer.missedFires)")
                if loop.now == ms(100) { simulation.spend(.milliseconds(200)) }
            }
            loop.run(in: .default, until: ms(500))
            #expect(log.text == "100/0 400/2 500/0")
        }
    }

    @Test("a nanosecond before the grid point is in time for it (R116)")
    func endsJustBefore() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.timer(100, every: 100) { timer in
                log("\(loop.now.word)/\(timer.missedFires)")
                if loop.now == ms(100) { simulation.spend(.nanoseconds(199_999_999)) }
            }
            loop.run(in: .default, until: ms(400))
            #expect(log.text == "100/0 300/1 400/0")
        }
    }

    @Test("starved in a mode that does not run, a timer fires once and is back on its grid (R117)")
    func starvedByMode() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let timer = loop.timer(10, every: 10) { timer in log("\(loop.now.word)/\(timer.missedFires)") }
            loop.keepAlive(in: .tracking)
            loop.run(in: .default, until: ms(10))
            loop.run(in: .tracking, until: ms(55))
            #expect(timer.fireDate == ms(20))
            loop.run(in: .default, until: ms(70))
            #expect(log.text == "10/0 55/3 60/0 70/0")
        }
    }

    @Test("starved by another timer's long callback, a timer fires once (R117)")
    func starvedByCallback() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.timer(15) { _ in simulation.spend(.milliseconds(30)) }
            loop.timer(10, every: 10) { timer in log("\(loop.now.word)/\(timer.missedFires)") }
            loop.run(in: .default, until: ms(60))
            #expect(log.text == "10/0 45/2 50/0 60/0")
        }
    }

    @Test("missed periods before the fire and during its callback add up in the fire that follows")
    func missedBoth() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            simulation.spend(.milliseconds(35))
            loop.timer(10, every: 10) { timer in
                log("\(loop.now.word)/\(timer.missedFires)")
                if loop.now == ms(35) { simulation.spend(.milliseconds(20)) }
            }
            loop.run(in: .default, until: ms(70))
            #expect(log.text == "35/2 60/2 70/0")
        }
    }

    @Test("a timer added long after its date fires at once, and its grid stays anchored at its date (R102, R118)")
    func addedLate() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let timer = Timer(fire: ms(10), interval: .milliseconds(100), repeats: true) { timer in
                log("\(loop.now.word)/\(timer.missedFires)")
            }
            simulation.spend(.milliseconds(250))
            loop.add(timer, forMode: .default)
            loop.run(in: .default, until: ms(320))
            #expect(log.text == "250/2 310/0")
        }
    }

    @Test("a date that is past at creation keeps its phase")
    func pastAtCreation() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            simulation.spend(.milliseconds(250))
            let timer = loop.timer(30, every: 100) { timer in log("\(loop.now.word)/\(timer.missedFires)") }
            #expect(timer.fireDate == ms(30))
            loop.run(in: .default, until: ms(450))
            #expect(log.text == "250/2 330/0 430/0")
        }
    }

    @Test("during its callback a repeating timer's fireDate is the date being fired (R121)")
    func fireDateInCallback() {
        withSimulation { simulation in
            let loop = simulation.loop
            let timer = loop.timer(10, every: 10) { timer in
                #expect(timer.fireDate == loop.now)
                simulation.spend(.milliseconds(3))
                #expect(timer.fireDate + .milliseconds(3) == loop.now)
            }
            loop.run(in: .default, until: ms(30))
            #expect(timer.fireDate == ms(40))
            #expect(loop.statistics.fires == 3)
        }
    }

    // MARK: Order

    @Test("equal deadlines fire in armed order (R127)")
    func equalDeadlines() {
        withSimulation { simulation in
            let loop = simulation.loop
            var fired: [Int] = []
            for index in 0..<100 { loop.timer(10) { _ in fired.append(index) } }
            loop.run(in: .default)
            #expect(fired == Array(0..<100))
        }
    }

    @Test("equal deadlines fire in armed order across modes")
    func equalDeadlinesAcrossModes() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let choices: [RunLoop.Modes] = [.default, .common, [.default, .tracking], [.default, "panel"]]
            for index in 0..<12 { loop.timer(10, in: choices[index % 4]) { _ in log("\(index)") } }
            loop.run(in: .default)
            #expect(log.text == "0 1 2 3 4 5 6 7 8 9 10 11")
        }
    }

    @Test("due together, timers fire by date, regardless of the order in which they were added (R127)")
    func byDate() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            for date: Int64 in [30, 10, 20, 10, 30, 5] { loop.timer(date) { _ in log("\(date)") } }
            simulation.spend(.milliseconds(100))
            loop.run(in: .default)
            #expect(log.text == "5 10 10 20 30 30")
        }
    }

    @Test("a repeating timer comes after those already armed for the same date (R127)")
    func reinsertion() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.timer(0, every: 2000) { _ in log("A\(loop.now.nanoseconds / 1_000_000_000)") }
            loop.timer(0, every: 1000) { _ in log("B\(loop.now.nanoseconds / 1_000_000_000)") }
            loop.run(in: .default, until: ms(4000))
            #expect(log.text == "A0 B0 B1 A2 B2 B3 A4 B4")
        }
    }

    @Test("setting the same date again takes a new place in the order; changing modes does not")
    func placeInOrder() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let timers = ["A", "B", "C", "D"].map { name in loop.timer(10) { _ in log(name) } }
            timers[0].fireDate = ms(10)
            loop.add(timers[1], forMode: .tracking)
            loop.remove(timers[2], forMode: .default)
            loop.add(timers[2], forMode: .default)
            loop.run(in: .default)
            #expect(log.text == "B C D A")
        }
    }

    @Test("a date that is set while the timer is in no mode takes a new place in the order as well")
    func placeInOrderOutOfModes() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let timers = ["A", "B", "C", "D"].map { name in loop.timer(10) { _ in log(name) } }
            for timer in timers[0...1] { loop.remove(timer, forMode: .default) }
            timers[0].fireDate = ms(10)
            timers[2].fireDate = ms(10)
            for timer in timers[0...1] { loop.add(timer, forMode: .default) }
            loop.run(in: .default)
            #expect(log.text == "B D A C")
        }
    }

    // MARK: A day

    @Test("a day at one hertz is 86,400 fires, none missed")
    func oneDay() {
        withSimulation { simulation in
            let loop = simulation.loop
            var (fires, missed) = (0, 0)
            Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { timer in
                fires += 1
                missed += timer.missedFires
            }
            simulation.advance(by: .seconds(86_400))
            #expect(fires == 86_400)
            #expect(missed == 0)
            #expect(loop.statistics.fires == 86_400)
            #expect(loop.now == ms(86_400_000))
            loop.checkInvariants()
        }
    }
}
