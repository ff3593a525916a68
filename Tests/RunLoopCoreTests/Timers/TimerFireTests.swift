import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@_spi(Ports) @testable import RunLoopCore

@Suite("Firing a timer by hand")
struct TimerFireTests {
    @Test("requests to an invalid timer, or to fire a timer in its own callback, are reported")
    func told() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.trace = { if case .ignored(let what) = $0 { log(what) } }
            let timer = loop.timer(10, every: 10) { timer in
                timer.fire()
                timer.invalidate()
            }
            loop.run(in: .default)
            timer.fire()
            timer.fireDate = ms(50)
            timer.rearm(at: ms(50))
            #expect(
                log.entries == [
                    "\(timer) was asked to fire in its own callback", "\(timer) was asked to fire, but it is invalid",
                    "\(timer) was given a new date, but it is invalid",
                    "\(timer) was given a new date, but it is invalid",
                ])
        }
    }

    @Test("fire calls the block at once, scheduled or not, regardless of the mode (R143)")
    func synchronous() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let scheduled = loop.timer(100, every: 100, in: .tracking) { _ in log("scheduled") }
            let unscheduled = Timer(fire: ms(100), interval: .seconds(1), repeats: true) { _ in log("unscheduled") }
            scheduled.fire()
            unscheduled.fire()
            #expect(log.text == "scheduled unscheduled")
            #expect(unscheduled.isValid)
            #expect(loop.now == ms(0))
        }
    }

    @Test("a repeating timer's schedule is not disturbed (R144)")
    func repeating() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let timer = loop.timer(100, every: 100) { _ in log(loop.now.word) }
            simulation.spend(.milliseconds(50))
            timer.fire()
            #expect(timer.fireDate == ms(100))
            timer.fire()
            loop.checkInvariants()
            loop.run(in: .default, until: ms(250))
            #expect(log.text == "50 50 100 200")
        }
    }

    @Test("fire keeps the timer's place among equal deadlines (R144)")
    func keepsPlace() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let timer = loop.timer(100, every: 1000) { _ in log("A") }
            loop.timer(100) { _ in log("B") }
            timer.fire()
            loop.run(in: .default, until: ms(100))
            #expect(log.text == "A A B")
        }
    }

    @Test("firing a one-shot by hand invalidates it, even before its date (R145)")
    func oneShot() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let timer = loop.timer(100) { timer in
                #expect(timer.isValid)
                log("T")
            }
            timer.fire()
            #expect(!timer.isValid)
            #expect(loop.run(in: .default) == .finished)
            #expect(log.text == "T")
            #expect(loop.now == ms(0))
        }
    }

    @Test("firing an invalid timer by hand does nothing (R146)")
    func invalid() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let timer = loop.timer(100, every: 100) { _ in log("T") }
            timer.invalidate()
            timer.fire()
            #expect(log.text == "")
        }
    }

    @Test("a run nested in a manual fire does not fire the timer again, and its schedule continues afterwards (R91)")
    func nestedRun() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.keepAlive()
            let timer = loop.timer(10, every: 10) { _ in
                log("\(loop.now.word)<")
                if loop.now == ms(0) { loop.run(in: .default, until: ms(15)) }
                log("\(loop.now.word)>")
            }
            timer.fire()
            loop.run(in: .default, until: ms(20))
            #expect(log.text == "0< 15> 15< 15> 20< 20>")
        }
    }

    @Test("a date set during a manual fire counts (R131)")
    func dateSetInside() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let timer = loop.timer(100, every: 100) { timer in
                log(loop.now.word)
                if loop.now == ms(0) { timer.fireDate = ms(30) }
            }
            timer.fire()
            loop.run(in: .default, until: ms(200))
            #expect(log.text == "0 30 130")
        }
    }

    @Test("a timer that is added to a loop during its manual fire is scheduled")
    func addedInside() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let timer = Timer(fire: ms(10), interval: .milliseconds(10), repeats: true) { timer in
                log(loop.now.word)
                loop.add(timer, forMode: .default)
            }
            timer.fire()
            #expect(loop.nextFireDate(forMode: .default) == ms(10))
            loop.run(in: .default, until: ms(25))
            #expect(log.text == "0 10 20")
        }
    }

    @Test("a timer that is invalidated during its manual fire stays so")
    func invalidatedInside() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let timer = loop.timer(10, every: 10) { timer in
                log("T")
                timer.invalidate()
            }
            timer.fire()
            #expect(loop.run(in: .default) == .finished)
            #expect(log.text == "T")
            loop.checkInvariants()
        }
    }

    @Test("a due timer that another thread has invalidated is not counted as a fire")
    func invalidatedIsNotCounted() {
        withSimulation { simulation in
            let loop = simulation.loop
            let victim = Timer(fire: ms(10), interval: .zero, repeats: false) { _ in }
            let remote = victim.remote
            loop.timer(10) { _ in remote.invalidate() }
            loop.add(victim, forMode: .default)
            loop.run(in: .default)
            #expect(loop.statistics.fires == 1)
        }
    }
}
