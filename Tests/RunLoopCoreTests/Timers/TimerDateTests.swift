import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@_spi(Ports) @testable import RunLoopCore

@Suite("Setting a timer's fire date")
struct TimerDateTests {
    @Test("a new date moves the next fire, and the grid with it (R130)")
    func movesGrid() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let timer = loop.timer(10, every: 10) { timer in log("\(loop.now.word)/\(timer.missedFires)") }
            loop.run(in: .default, until: ms(15))
            timer.fireDate = ms(37)
            #expect(timer.fireDate == ms(37))
            loop.checkInvariants()
            loop.run(in: .default, until: ms(60))
            #expect(log.text == "10/0 37/0 47/0 57/0")
        }
    }

    @Test("a new date may be earlier than the old one (R130)")
    func earlier() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let timer = loop.timer(100) { _ in log(loop.now.word) }
            loop.timer(10) { _ in timer.fireDate = ms(20) }
            loop.run(in: .default)
            #expect(log.text == "20")
        }
    }

    @Test("setting fireDate inside the callback wins, later or earlier than the grid (R131)")
    func insideCallback() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.timer(100, every: 100) { timer in
                log(loop.now.word)
                if loop.now == ms(100) { timer.fireDate = ms(130) }
                if loop.now == ms(130) { timer.fireDate = ms(555) }
                if loop.now == ms(130) { #expect(timer.fireDate == ms(555)) }
            }
            loop.run(in: .default, until: ms(800))
            #expect(log.text == "100 130 555 655 755")
        }
    }

    @Test("the last date set inside the callback counts, also after a long one")
    func lastDateCounts() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.timer(100, every: 100) { timer in
                log("\(loop.now.word)/\(timer.missedFires)")
                guard loop.now == ms(100) else { return }
                timer.fireDate = ms(150)
                timer.fireDate = ms(250)
                simulation.spend(.milliseconds(400))
            }
            loop.run(in: .default, until: ms(600))
            #expect(log.text == "100/0 500/2 550/0")
        }
    }

    @Test("a past date fires in the next pass, also when set inside the callback (R132)")
    func pastInsideCallback() {
        withObservedLoop { _, loop, log in
            var first = true
            loop.timer(100, every: 100) { timer in
                log("T\(loop.now.word)")
                if first { timer.fireDate = ms(80) }
                first = false
            }
            loop.run(in: .default, until: ms(190))
            #expect(log.text == "E BT BW AW T100 BT T100 BT BW AW T180 BT BW AW X")
        }
    }

    @Test("a past date set outside the callback fires at once and keeps its phase")
    func pastOutside() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            simulation.spend(.milliseconds(250))
            let timer = loop.timer(1000, every: 100) { timer in log("\(loop.now.word)/\(timer.missedFires)") }
            timer.fireDate = ms(30)
            #expect(timer.fireDate == ms(30))
            loop.run(in: .default, until: ms(340))
            #expect(log.text == "250/2 330/0")
        }
    }

    @Test("the distant future parks a timer, which stays valid and keeps its mode alive (R133)")
    func parked() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let timer = loop.timer(10, every: 10) { _ in log(loop.now.word) }
            timer.fireDate = .distantFuture
            #expect(timer.isValid)
            #expect(!loop.isEmpty(.default))
            #expect(loop.run(in: .default, until: ms(100)) == .timedOut)
            #expect(log.text == "")
            timer.fireDate = ms(105)
            loop.run(in: .default, until: ms(120))
            #expect(log.text == "105 115")
        }
    }

    @Test("a timer that parks itself in its callback can be resumed (R133)")
    func parksItself() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let timer = loop.timer(10, every: 10) { timer in
                log(loop.now.word)
                timer.fireDate = .distantFuture
            }
            loop.timer(50) { _ in timer.fireDate = ms(60) }
            #expect(loop.run(in: .default) == .starved)
            #expect(log.text == "10 60")
        }
    }

    @Test("setting the date of an invalid timer does nothing (R134)")
    func invalid() {
        withSimulation { simulation in
            let loop = simulation.loop
            let timer = loop.timer(10) { _ in }
            loop.run(in: .default)
            timer.fireDate = ms(50)
            #expect(!timer.isValid)
            #expect(timer.fireDate == ms(10))
            #expect(loop.isEmpty(.default))
        }
    }

    @Test("a one-shot's own callback cannot save it (R123)")
    func oneShotCannotBeSaved() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let timer = loop.timer(10) { timer in
                log(loop.now.word)
                timer.fireDate = ms(20)
            }
            #expect(loop.run(in: .default) == .finished)
            #expect(!timer.isValid)
            #expect(log.text == "10")
            loop.checkInvariants()
        }
    }

    @Test("after invalidation fireDate is the date at which the timer last fired (R135)")
    func afterInvalidation() {
        withSimulation { simulation in
            let loop = simulation.loop
            let timer = loop.timer(10, every: 10) { _ in }
            loop.run(in: .default, until: ms(35))
            #expect(timer.fireDate == ms(40))
            timer.invalidate()
            #expect(timer.fireDate == ms(30))
        }
    }

    @Test("a timer that is in no loop can be moved")
    func unscheduled() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let timer = Timer(fire: ms(10), interval: .milliseconds(10), repeats: true) { _ in log(loop.now.word) }
            timer.fireDate = ms(25)
            loop.add(timer, forMode: .default)
            loop.run(in: .default, until: ms(50))
            #expect(log.text == "25 35 45")
        }
    }

    @Test("a date set by another thread's post takes effect at once (R130)")
    func fromAnotherThread() {
        withSimulation { simulation in
            let (loop, dates) = (simulation.loop, Log<(Int, RunLoop.Instant)>())
            let remote = loop.remote
            let timer = loop.timer(500) { _ in dates.append((0, loop.now)) }
            timer.name = "moved"
            loop.perform(inModes: .tracking) {}
            let thread = LoopThread(name: "other") { other in
                other.perform(at: ms(20)) { remote.perform { moveFirstTimer(of: $0, to: ms(40)) } }
            }
            loop.run(in: .default)
            #expect(dates.entries.map(\.1) == [ms(40)])
            thread.join()
        }
    }
}

private func moveFirstTimer(of loop: RunLoop, to date: RunLoop.Instant) {
    let first = loop.timers.items().map(\.node.object).first { $0.membership.contains(RunLoop.Mode.default) }
    (first as? Timer)?.fireDate = date
}
