import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@_spi(Ports) @testable import RunLoopCore

@Suite("A one-shot that is armed anew")
struct RearmTests {
    @Test("armed anew in its callback it fires again, and is invalid once a callback leaves it alone")
    func inCallback() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let timer = Timer(at: ms(10)) { timer in
                log(loop.now.word)
                if log.entries.count < 3 { timer.rearm(at: loop.now + .milliseconds(5)) }
            }
            loop.add(timer, forMode: .default)
            #expect(loop.run(in: .default) == .finished)
            #expect(log.text == "10 15 20")
            #expect(!timer.isValid)
            timer.rearm(at: ms(100))
            #expect(loop.isEmpty(.default))
            loop.checkInvariants()
        }
    }

    @Test("a date that has passed fires in the next pass, not in this one")
    func past() {
        withSimulation { simulation in
            let loop = simulation.loop
            var fires = 0
            loop.add(
                Timer(at: ms(10)) { timer in
                    fires += 1
                    if fires < 4 { timer.rearm(at: ms(0)) }
                }, forMode: .default)
            loop.run(in: .default, until: ms(10))
            #expect(fires == 4)
            #expect(loop.statistics.passes >= 4)
        }
    }

    @Test("setting the date of a one-shot in its callback does not save it; arming it anew does")
    func fireDateIsNotEnough() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.timer(10) { timer in
                log("set")
                timer.fireDate = ms(20)
            }
            loop.timer(10) { timer in
                log("armed")
                if loop.now == ms(10) { timer.rearm(at: ms(20)) }
            }
            loop.run(in: .default)
            #expect(log.text == "set armed armed")
        }
    }

    @Test("invalidated after it was armed anew, it does not fire again")
    func invalidated() {
        withSimulation { simulation in
            let loop = simulation.loop
            var fires = 0
            loop.timer(10) { timer in
                fires += 1
                timer.rearm(at: ms(20))
                timer.invalidate()
            }
            #expect(loop.run(in: .default) == .finished)
            #expect(fires == 1)
        }
    }

    @Test("a manual fire may arm it anew, too")
    func manual() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let timer = loop.timer(50) { timer in
                log(loop.now.word)
                if loop.now == ms(0) { timer.rearm(at: ms(20)) }
            }
            timer.fire()
            #expect(timer.isValid)
            loop.run(in: .default)
            #expect(log.text == "0 20")
        }
    }

    @Test("a timer taken out of its loop in its callback waits until it is added again")
    func removed() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let timer = loop.timer(10) { timer in
                log(loop.now.word)
                guard loop.now == ms(10) else { return }
                timer.rearm(at: ms(20))
                loop.remove(timer, forMode: .default)
            }
            #expect(loop.run(in: .default) == .finished)
            #expect(timer.isValid)
            loop.add(timer, forMode: .default)
            loop.run(in: .default)
            #expect(log.text == "10 20")
            #expect(!timer.isValid)
        }
    }

    @Test("another thread moves a timer through its remote")
    func remote() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let remote = loop.timer(50) { _ in log(loop.now.word) }.remote
            let thread = LoopThread { other in
                other.perform(at: ms(10)) { remote.setFireDate(ms(30)) }
            }
            loop.run(in: .default)
            #expect(log.text == "30")
            thread.join()
            remote.setFireDate(ms(60))
        }
    }
}
