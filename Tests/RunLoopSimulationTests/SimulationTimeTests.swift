import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@Suite("Virtual time", .timeLimit(.minutes(15)))
struct SimulationTimeTests {
    @Test("time starts at zero and stands still while code runs")
    func startsAtZero() {
        withSimulation { simulation in
            #expect(simulation.now == seconds(0))
            #expect(RunLoop.current === simulation.loop)
            #expect(simulation.loop.now == seconds(0))
            #expect(simulation.now == seconds(0))
        }
    }

    @Test("advance(by:) moves the time exactly, and everything due by then has happened, at its date")
    func advanceBy() {
        withSimulation { simulation in
            var fires: [RunLoop.Instant] = []
            Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { _ in fires.append(simulation.now) }
            simulation.advance(by: .milliseconds(999))
            #expect(fires == [])
            simulation.advance(by: .milliseconds(1))
            #expect(fires == [seconds(1)])
            simulation.advance(by: .seconds(2))
            #expect(fires == [seconds(1), seconds(2), seconds(3)])
            #expect(simulation.now == seconds(3))
        }
    }

    @Test("advance(to:) ends at its date, also with nothing scheduled")
    func advanceTo() {
        withSimulation { simulation in
            simulation.advance(to: seconds(7))
            #expect(simulation.now == seconds(7))
            var fires: [RunLoop.Instant] = []
            simulation.loop.perform(afterDelay: .seconds(1)) { fires.append(simulation.now) }
            simulation.advance(to: seconds(10))
            #expect(fires == [seconds(8)])
            #expect(simulation.now == seconds(10))
        }
    }

    @Test("advance to a date that has come runs the due blocks, and the time stays")
    func advanceToThePast() {
        withSimulation { simulation in
            var ran = 0
            simulation.advance(to: seconds(5))
            simulation.loop.perform { ran += 1 }
            simulation.advance(to: seconds(1))
            #expect(ran == 1)
            simulation.loop.perform { ran += 1 }
            simulation.advance(by: .zero)
            #expect(ran == 2)
            #expect(simulation.now == seconds(5))
        }
    }

    @Test("a stop does not keep the time from moving on")
    func advanceAcrossStop() {
        withSimulation { simulation in
            var fires = 0
            Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { _ in
                fires += 1
                simulation.loop.stop()
            }
            simulation.advance(by: .seconds(5))
            #expect(fires == 5)
            #expect(simulation.now == seconds(5))
        }
    }

    @Test("a day of seconds passes at once, and every one of them counts")
    func aDay() {
        withSimulation { simulation in
            var ticks = 0
            Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { _ in ticks += 1 }
            simulation.advance(by: .seconds(86_400))
            #expect(ticks == 86_400)
        }
    }

    @Test("tolerance moves no fire on virtual time")
    func tolerance() {
        withSimulation { simulation in
            var fires: [RunLoop.Instant] = []
            let timer = Timer(timeInterval: .seconds(1), repeats: true) { _ in fires.append(simulation.now) }
            timer.tolerance = .milliseconds(500)
            simulation.loop.add(timer, forMode: .default)
            simulation.advance(by: .seconds(2))
            #expect(fires == [seconds(1), seconds(2)])
        }
    }

    @Test("spent time blocks the loop: one fire makes up for those it swallows, then the grid continues (R115, R116)")
    func spend() {
        withSimulation { simulation in
            var fires: [RunLoop.Instant] = []
            var missed: [Int] = []
            Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { timer in
                fires.append(simulation.now)
                missed.append(timer.missedFires)
                if fires.count == 1 { simulation.spend(.seconds(2.5)) }
            }
            simulation.advance(by: .seconds(6))
            #expect(fires == [1, 4, 5, 6].map(seconds))
            #expect(missed == [0, 2, 0, 0])
        }
    }

    @Test("spent time outside of a handler passes like any other")
    func spendOutside() {
        withSimulation { simulation in
            var fires: [RunLoop.Instant] = []
            Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { _ in fires.append(simulation.now) }
            simulation.spend(.seconds(3.5))
            #expect(simulation.now == seconds(3.5))
            #expect(fires == [])
            simulation.advance(to: seconds(5))
            #expect(fires == [3.5, 4, 5].map(seconds))
            simulation.spend(.zero)
            simulation.spend(.seconds(-1))
            #expect(simulation.now == seconds(5))
        }
    }

    @Test("runUntilIdle runs until nothing can happen any more, and the time stays at the last event")
    func idle() {
        withSimulation { simulation in
            var log: [String] = []
            simulation.loop.perform(afterDelay: .seconds(3)) {
                log.append("three")
                simulation.loop.perform(afterDelay: .seconds(4)) { log.append("seven") }
            }
            simulation.loop.perform { log.append("zero") }
            #expect(simulation.runUntilIdle() == .done)
            #expect(log == ["zero", "three", "seven"])
            #expect(simulation.now == seconds(7))
            #expect(simulation.runUntilIdle() == .done)
            #expect(simulation.now == seconds(7))
        }
    }

    @Test("runUntilIdle reports items that wait for events that can never come")
    func idleButWaiting() {
        withSimulation { simulation in
            simulation.loop.add(CustomSource(), forMode: .default)
            let timer = Timer(timeInterval: .seconds(1), repeats: true) { _ in }
            timer.name = "scroll"
            simulation.loop.add(timer, forMode: .tracking)
            simulation.loop.perform(inModes: .tracking) {}
            let standing = simulation.runUntilIdle()
            guard case .stuck(let waits) = standing else {
                Issue.record("\(standing)")
                return
            }
            let waiting = waits.map(\.what)
            #expect(
                waiting.contains {
                    $0.hasPrefix("source (RunLoopSimulationTests/SimulationTimeTests.swift:")
                        && $0.hasSuffix(") in default")
                })
            #expect(waiting.contains { $0.hasPrefix("timer \"scroll\"") && $0.contains(") in tracking, due 1.0") })
            #expect(waiting.contains { $0.hasPrefix("block (") && $0.hasSuffix("in tracking") })
            #expect(simulation.now == seconds(0))
        }
    }

    @Test("runUntilIdle reports items scheduled beyond its limit, which do not run")
    func beyondLimit() {
        withSimulation { simulation in
            var fires = 0
            let timer = Timer.scheduledTimer(withTimeInterval: .seconds(4), repeats: true) { _ in fires += 1 }
            timer.name = "clock"
            let next = "timer \"clock\" (\(timer.origin)) of main"
            #expect(simulation.runUntilIdle(limit: .seconds(10)) == .idle(until: seconds(12), next: next))
            #expect(fires == 2)
            #expect(simulation.now <= seconds(10))
            #expect(simulation.waits.map(\.what) == ["\(timer) in default, due 12.000000000, every 4.0 seconds"])
            // The limit is gone, but not the timer.
            simulation.advance(to: seconds(12))
            #expect(fires == 3)
            timer.invalidate()
            #expect(simulation.runUntilIdle() == .done)
        }
    }

    @Test("a fire right at the limit of runUntilIdle happens")
    func atTheLimit() {
        withSimulation { simulation in
            var fires = 0
            simulation.loop.perform(afterDelay: .seconds(10)) { fires += 1 }
            #expect(simulation.runUntilIdle(limit: .seconds(10)) == .done)
            #expect(fires == 1)
        }
    }

    @Test("a parked timer keeps a loop neither busy nor from being idle (R133)")
    func parkedTimer() {
        withSimulation { simulation in
            let timer = Timer(fire: .distantFuture, interval: .seconds(1), repeats: true) { _ in }
            simulation.loop.add(timer, forMode: .default)
            guard case .stuck(let waits) = simulation.runUntilIdle() else {
                Issue.record("\(simulation.standing)")
                return
            }
            #expect(waits.count == 1)
        }
    }

    @Test("a run that can never wake returns starved, without any time passing")
    func starved() {
        withSimulation { simulation in
            simulation.loop.add(CustomSource(), forMode: .default)
            #expect(simulation.loop.run(in: .default) == .starved)
            #expect(simulation.loop.run(mode: .default, before: .distantFuture) == false)
            simulation.loop.run()
            #expect(simulation.now == seconds(0))
            #expect(simulation.loop.run(in: .default, until: seconds(1)) == .timedOut)
            #expect(simulation.now == seconds(1))
        }
    }

    @Test("a drag runs the tracking mode from its start to its end: default timers rest, common ones continue (R25)")
    func drag() {
        withSimulation { simulation in
            let loop = simulation.loop
            loop.addCommonMode(.tracking)
            var (plain, common, modes): ([RunLoop.Instant], [RunLoop.Instant], [RunLoop.Mode?]) = ([], [], [])
            Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { _ in plain.append(simulation.now) }
            let timer = Timer(timeInterval: .seconds(1), repeats: true) { _ in
                common.append(simulation.now)
                modes.append(loop.currentMode)
            }
            loop.add(timer, forMode: .common)
            simulation.drag(from: seconds(2.5), until: seconds(5.5))
            simulation.advance(to: seconds(8))
            #expect(plain == [1, 2, 5.5, 6, 7, 8].map(seconds))
            #expect(common == [1, 2, 3, 4, 5, 6, 7, 8].map(seconds))
            #expect(modes == [.default, .default, .tracking, .tracking, .tracking, .default, .default, .default])
            #expect(loop.currentMode == nil)
        }
    }

    @Test("a drag may be in another mode, two may follow each other, and afterwards nothing of them is left")
    func drags() {
        withSimulation { simulation in
            let loop = simulation.loop
            var panel = 0
            let timer = Timer(timeInterval: .milliseconds(100), repeats: true) { _ in panel += 1 }
            loop.add(timer, forMode: "panel")
            simulation.drag(from: seconds(1), until: seconds(2), in: "panel")
            simulation.drag(from: seconds(3), until: seconds(4))
            simulation.advance(to: seconds(2.5))
            // One for all events before the drag, then the panel's in its second.
            #expect(panel == 11)
            simulation.advance(to: seconds(5))
            #expect(panel == 11)
            timer.invalidate()
            #expect(simulation.runUntilIdle() == .done)
        }
    }
}
