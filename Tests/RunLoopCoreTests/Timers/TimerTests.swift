import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@_spi(Ports) @testable import RunLoopCore

@Suite("Timers")
struct TimerTests {
    // MARK: Creation

    @Test("a timer's first fire is one interval after its creation, not after it was added (R96)")
    func fromCreation() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let timer = Timer(timeInterval: .milliseconds(100), repeats: true) { _ in log(loop.now.word) }
            #expect(timer.fireDate == ms(100))
            simulation.spend(.milliseconds(60))
            loop.add(timer, forMode: .default)
            loop.run(in: .default, until: ms(250))
            #expect(log.text == "100 200")
        }
    }

    @Test("a scheduled timer is in the default mode only (R96)")
    func scheduledTimer() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.addCommonMode(.tracking)
            let timer = Timer.scheduledTimer(withTimeInterval: .milliseconds(10), repeats: false) { _ in
                log(loop.now.word)
            }
            #expect(loop.contains(timer, forMode: .default))
            #expect(!loop.contains(timer, forMode: .common))
            #expect(!loop.contains(timer, forMode: .tracking))
            loop.run()
            #expect(log.text == "10")
        }
    }

    @Test("the interval is used only by a timer that repeats, and reads zero otherwise (R97, R99)")
    func oneShotInterval() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let timer = Timer(fire: ms(30), interval: .milliseconds(10), repeats: false) { _ in log(loop.now.word) }
            #expect(timer.timeInterval == .zero)
            #expect(!timer.repeats)
            loop.add(timer, forMode: .default)
            #expect(loop.run(in: .default) == .finished)
            #expect(log.text == "30")
        }
    }

    @Test("an interval of zero or less is taken as 0.0001 s (R98)")
    func shortestInterval() {
        withSimulation { simulation in
            let loop = simulation.loop
            for interval in [Duration.zero, .seconds(-5)] {
                let timer = Timer(fire: ms(1), interval: interval, repeats: true) { _ in }
                #expect(timer.timeInterval == .microseconds(100))
                #expect(Timer(timeInterval: interval, repeats: true) { _ in }.fireDate == ns(100_000))
                #expect(Timer(timeInterval: interval, repeats: false) { _ in }.fireDate == ns(100_000))
            }
            var dates: [RunLoop.Instant] = []
            let timer = Timer(fire: ms(1), interval: .zero, repeats: true) { _ in dates.append(loop.now) }
            loop.add(timer, forMode: .default)
            loop.run(in: .default, until: ns(1_250_000))
            #expect(dates == [ns(1_000_000), ns(1_100_000), ns(1_200_000)])
        }
    }

    @Test("an interval that is short but above zero is taken as it is (R96, R98)")
    func shortInterval() {
        withSimulation { simulation in
            let loop = simulation.loop
            #expect(Timer(timeInterval: .microseconds(10), repeats: false) { _ in }.fireDate == ns(10_000))
            let timer = Timer(timeInterval: .microseconds(10), repeats: true) { _ in }
            #expect(timer.timeInterval == .microseconds(10))
            loop.add(timer, forMode: .default)
            loop.run(in: .default, until: ns(55_000))
            #expect(loop.statistics.fires == 5)
        }
    }

    // MARK: Membership

    @Test("a timer in two modes fires once")
    func twoModes() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.timer(10, in: [.default, .tracking]) { _ in log(loop.currentMode!.name) }
            #expect(loop.run(in: .tracking) == .finished)
            #expect(loop.run(in: .default) == .finished)
            #expect(log.text == "tracking")
        }
    }

    @Test("firing in one mode moves the date in all of them (R105)")
    func sharedDate() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.timer(10, every: 10, in: [.default, .tracking]) { _ in log("\(loop.currentMode!)\(loop.now.word)") }
            loop.run(in: .tracking, until: ms(25))
            #expect(loop.nextFireDate(forMode: .default) == ms(30))
            loop.run(in: .default, until: ms(30))
            #expect(log.text == "tracking10 tracking20 default30")
        }
    }

    @Test("a timer outside the mode keeps its deadline and fires when its mode runs")
    func outsideTheMode() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let timer = loop.timer(10) { _ in log(loop.now.word) }
            loop.keepAlive(in: .tracking)
            loop.run(in: .tracking, until: ms(50))
            #expect(timer.fireDate == ms(10))
            #expect(log.text == "")
            loop.run(in: .default)
            #expect(log.text == "50")
        }
    }

    @Test("a timer that was removed from its loop can be added to another (R106, R107)")
    func oneLoopAtATime() {
        withSimulation { outer in
            let (first, log) = (outer.loop, Log<String>())
            let timer = first.timer(10, every: 10) { _ in log("T") }
            withSimulation { inner in
                let second = inner.loop
                first.remove(timer, forMode: .default)
                second.add(timer, forMode: .default)
                second.run(in: .default, until: ms(20))
                #expect(log.text == "T T")
                #expect(first.isEmpty(.default))
                second.remove(timer, forMode: .default)
            }
            #expect(timer.isValid)
            first.add(timer, forMode: .default)
            first.run(in: .default, until: ms(30))
            #expect(log.text == "T T T")
        }
    }

    @Test("a timer that was removed from a loop that has ended fires in the next one without a spin")
    func laterLoop() {
        var fires = 0
        let timer = Timer(fire: ms(10), interval: .milliseconds(10), repeats: true) { _ in fires += 1 }
        for round in 1...20 {
            withSimulation { simulation in
                let loop = simulation.loop
                if round.isMultiple(of: 2) {
                    loop.add(timer, forMode: .default)
                    timer.fireDate = ms(10)
                    #expect(loop.run(in: .default, until: ms(15)) == .timedOut)
                    #expect(fires == round / 2)
                    #expect(loop.statistics.passes == 2)
                } else {
                    for _ in 0..<1000 { loop.timer(500) { _ in } }
                    loop.add(timer, forMode: .default)
                    timer.fireDate = ms(10)
                }
                loop.remove(timer, forMode: .default)
            }
        }
    }

    @Test("a timer removed from one loop and added to the next is not held up by the first one's count")
    func keptPlaceIsPerLoop() {
        for _ in 0..<20 {
            var fires = 0
            let timer = Timer(fire: ms(10), interval: .zero, repeats: false) { _ in fires += 1 }
            withSimulation { simulation in
                for _ in 0..<1000 { simulation.loop.timer(500) { _ in } }
                simulation.loop.add(timer, forMode: .default)
                simulation.loop.remove(timer, forMode: .default)
            }
            withSimulation { simulation in
                simulation.loop.add(timer, forMode: .default)
                #expect(simulation.loop.run(in: .default) == .finished)
                #expect(fires == 1)
                #expect(simulation.loop.statistics.passes == 1)
            }
        }
    }

    @Test("adding twice is adding once, and one removal undoes it; the date stays (R108, R112)")
    func addedTwice() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let timer = loop.timer(10, every: 10) { _ in log(loop.now.word) }
            loop.add(timer, forMode: .default)
            loop.run(in: .default, until: ms(15))
            loop.remove(timer, forMode: .default)
            loop.remove(timer, forMode: .default)
            #expect(loop.isEmpty(.default))
            #expect(timer.isValid)
            #expect(timer.fireDate == ms(20))
            loop.checkInvariants()
            loop.add(timer, forMode: .default)
            loop.run(in: .default, until: ms(20))
            #expect(log.text == "10 20")
        }
    }

    @Test("an invalid timer is not added, and does not keep a mode alive (R109)")
    func invalidTimer() {
        withSimulation { simulation in
            let loop = simulation.loop
            let timer = Timer(fire: ms(10), interval: .zero, repeats: false) { _ in }
            timer.invalidate()
            loop.add(timer, forMode: .default)
            #expect(!loop.contains(timer, forMode: .default))
            #expect(loop.isEmpty(.default))
        }
    }

    @Test("a timer added by another thread's post to a sleeping loop fires at the right time (R111)")
    func addedFromAnotherThread() {
        withSimulation { simulation in
            let loop = simulation.loop
            loop.timer(1000) { _ in }
            let remote = loop.remote
            let dates = Log<(Int, RunLoop.Instant)>()
            let thread = LoopThread(name: "other") { other in
                other.perform(at: ms(20)) {
                    remote.perform { loop in loop.timer(50) { _ in dates.append((0, loop.now)) } }
                }
            }
            loop.run(in: .default, until: ms(100))
            #expect(dates.entries.map(\.1) == [ms(50)])
            thread.join()
        }
    }

    // MARK: Which fire in a pass

    @Test("timers that come due while a pass fires wait for the next pass (R125)")
    func dueMeanwhile() {
        withObservedLoop { simulation, loop, log in
            loop.timer(10) { _ in
                log("A")
                simulation.spend(.milliseconds(10))
            }
            loop.timer(15) { _ in log("B") }
            loop.run(in: .default)
            #expect(log.text == "E BT BW AW A BT B X")
        }
    }

    @Test("timers added during a pass wait for the next, however long they are due (R125)")
    func addedMeanwhile() {
        withObservedLoop { _, loop, log in
            loop.timer(10) { _ in
                log("A")
                loop.timer(0) { _ in log("C") }
            }
            loop.timer(10) { _ in log("B") }
            loop.run(in: .default)
            #expect(log.text == "E BT BW AW A B BT C X")
        }
    }

    @Test("a timer cancelled, moved or removed by an earlier one in the same pass does not fire (R126, R138)")
    func recheckedBeforeFire() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            var victims: [Timer] = []
            loop.timer(10) { _ in
                log("A")
                victims[0].invalidate()
                victims[1].fireDate = ms(30)
                loop.remove(victims[2], forMode: .default)
                loop.remove(victims[3], forMode: .default)
                loop.checkInvariants()
            }
            victims = ["invalid", "moved", "removed", "elsewhere"].map { name in
                loop.timer(10) { _ in log(name) }
            }
            loop.add(victims[3], forMode: .tracking)
            loop.timer(10) { _ in log("Z") }
            loop.run(in: .default)
            #expect(log.text == "A Z moved")
            loop.run(in: .tracking)
            #expect(log.text == "A Z moved elsewhere")
        }
    }

    @Test("a due timer that is brought into the running mode during a pass waits for the next")
    func joinsDuringPass() {
        withObservedLoop { _, loop, log in
            var guest: Timer?
            loop.timer(10) { _ in
                log("A")
                loop.add(guest!, forMode: .default)
                loop.addCommonMode("joining")
            }
            guest = loop.timer(5, in: .tracking) { _ in log("guest") }
            loop.timer(10) { _ in log("B") }
            loop.run(in: .default)
            #expect(log.text == "E BT BW AW A B BT guest X")
        }
    }

    @Test("a one-shot is valid during its callback and invalid after it (R122)")
    func oneShotValidity() {
        withSimulation { simulation in
            let loop = simulation.loop
            let timer = loop.timer(10, in: [.default, .tracking]) { timer in #expect(timer.isValid) }
            loop.run(in: .default)
            #expect(!timer.isValid)
            #expect(loop.isEmpty(.tracking))
        }
    }

    @Test("a timer removed in its own callback is not scheduled again by it (R124)")
    func removedInCallback() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let timer = loop.timer(10, every: 10) { timer in
                log(loop.now.word)
                loop.remove(timer, forMode: .default)
            }
            #expect(loop.run(in: .default) == .finished)
            #expect(timer.isValid)
            #expect(timer.fireDate == ms(20))
            loop.add(timer, forMode: .default)
            loop.run(in: .default)
            #expect(log.text == "10 20")
            loop.checkInvariants()
        }
    }
}
