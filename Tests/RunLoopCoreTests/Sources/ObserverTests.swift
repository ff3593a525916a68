import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@_spi(Ports) @testable import RunLoopCore

@Suite("Observers")
struct ObserverTests {
    @Test("activities have CFRunLoop's values (R60)")
    func values() {
        let activities: [RunLoop.Activity] = [
            .entry, .beforeTimers, .beforeSources, .beforeWaiting, .afterWaiting, .exit,
        ]
        #expect(activities.map(\.rawValue) == [1, 2, 4, 32, 64, 128])
        #expect(RunLoop.Activity.all == RunLoop.Activity(activities))
    }

    @Test("observers are called by order, equal ones as they were added (R59)")
    func order() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            for (order, name) in [(5, "5a"), (-1, "-1"), (5, "5b"), (0, "0a"), (Int.max, "max"), (0, "0b"), (5, "5c")] {
                loop.observe(.entry, order: order) { log(name) }
                loop.checkInvariants()
            }
            loop.perform {}
            loop.run(in: .default)
            #expect(log.text == "-1 0a 0b 5a 5b 5c max")
        }
    }

    @Test("an observer receives the activity that it is called for, one at a time")
    func toldActivity() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.add(
                Observer(activities: [.beforeTimers, .exit, .afterWaiting]) { _, activity in
                    log(String(activity.rawValue))
                }, forMode: .default)
            loop.timer(10) { _ in log("T") }
            loop.run(in: .default)
            #expect(log.text == "2 64 T 128")
        }
    }

    @Test("an observer that does not repeat is invalid after its first call (R61)")
    func notRepeating() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let observer = Observer(activities: .all, repeats: false) { observer, activity in
                #expect(observer.isValid)
                log(String(activity.rawValue))
            }
            loop.add(observer, forMode: [.default, .tracking])
            #expect(observer.isValid)
            loop.perform(inModes: .tracking) {}
            loop.run(in: .tracking)
            #expect(!observer.isValid)
            loop.perform {}
            loop.run(in: .default)
            #expect(log.text == "1")
            loop.checkInvariants()
        }
    }

    @Test("an observer added during an activity is not called in it (R62)")
    func addedMeanwhile() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.observe(.beforeTimers, repeats: false) {
                log("A")
                loop.observe(.beforeTimers, order: 1) { log("B") }
                loop.observe(.beforeSources, order: 1) { log("C") }
            }
            loop.timer(10) { _ in log("T") }
            loop.timer(20) { _ in log("T") }
            loop.run(in: .default)
            #expect(log.text == "A C T B C T")
        }
    }

    @Test("an observer invalidated by an earlier one is not called, one merely removed still is (R62)")
    func removedMeanwhile() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            var victims: [Observer] = []
            loop.observe(.beforeTimers, repeats: false) {
                log("A")
                victims[0].invalidate()
                loop.remove(victims[1], forMode: .default)
            }
            victims.append(loop.observe(.beforeTimers, order: 1) { log("invalidated") })
            victims.append(loop.observe(.beforeTimers, order: 1) { log("removed") })
            loop.timer(10) { _ in log("T") }
            loop.timer(20) { _ in log("T") }
            loop.run(in: .default)
            #expect(log.text == "A removed T T")
            loop.checkInvariants()
        }
    }

    @Test("an observer on the stack is not called by a nested run, the others are (R63)")
    func notReentered() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            var isNested = false
            loop.observe(.beforeTimers) {
                log("A<")
                if !isNested {
                    isNested = true
                    loop.run(in: .default, until: .distantPast)
                }
                log("A>")
            }
            loop.observe(.beforeTimers, order: 1) { log("B") }
            loop.timer(10) { _ in log("T") }
            loop.run(in: .default)
            #expect(log.text == "A< B A> B T")
        }
    }

    @Test("entry and exit are called once per run, also after a stop or a timeout (R55)")
    func entryAndExit() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.observe(.entry) { log("E") }
            loop.observe(.exit) { log("X") }
            loop.timer(10, every: 10) { _ in
                log("T")
                if loop.now == ms(40) { loop.stop() }
            }
            #expect(loop.run(in: .default, until: ms(25)) == .timedOut)
            #expect(loop.run(in: .default, until: ms(100)) == .stopped)
            #expect(log.text == "E T T X E T T X")
        }
    }

    @Test("an observer is added once to a mode, and one removal undoes it (R64)")
    func addedTwice() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let observer = loop.observe(.entry) { log("E") }
            loop.add(observer, forMode: .default)
            loop.perform {}
            loop.run(in: .default)
            #expect(log.text == "E")
            loop.remove(observer, forMode: .default)
            loop.perform {}
            loop.run(in: .default)
            #expect(log.text == "E")
            loop.add(observer, forMode: .default)
            loop.perform {}
            loop.run(in: .default)
            #expect(log.text == "E E")
        }
    }

    @Test("an invalid observer cannot be added (R64)")
    func addInvalid() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let observer = loop.observe(.entry) { log("E") }
            observer.invalidate()
            observer.invalidate()
            loop.add(observer, forMode: .default)
            loop.perform {}
            loop.run(in: .default)
            #expect(log.text == "")
            loop.checkInvariants()
        }
    }

    @Test("an observer of a loop that has ended is invalid, and is not called by another loop")
    func addAfterLoopEnded() {
        let log = Log<String>()
        let observer = Observer(activities: .entry) { _, _ in log("E") }
        for _ in 0..<2 {
            withSimulation { simulation in
                simulation.loop.add(observer, forMode: .default)
                simulation.loop.perform {}
                simulation.loop.run(in: .default)
            }
            #expect(!observer.isValid)
        }
        #expect(log.text == "E")
    }

    @Test("an invalidated observer releases its handler")
    func letsGo() {
        withSimulation { simulation in
            weak var kept: Token?
            let observer: Observer
            do {
                let token = Token()
                kept = token
                observer = simulation.loop.observe(.entry) { token.touch() }
            }
            #expect(kept != nil)
            observer.invalidate()
            #expect(kept == nil)
        }
    }

    @Test("the loop keeps its observers, and releases them at its end")
    func loopKeepsObservers() {
        weak var kept: Observer?
        withSimulation { simulation in
            kept = simulation.loop.observe(.entry) {}
            #expect(kept != nil)
        }
        #expect(kept == nil)
    }

    @Test("an observer may invalidate itself while it is called")
    func invalidatesItself() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let observer = Observer(activities: .beforeTimers) { observer, _ in
                log("A")
                observer.invalidate()
            }
            loop.add(observer, forMode: .common)
            loop.timer(10) { _ in log("T") }
            loop.timer(20) { _ in log("T") }
            loop.run(in: .default)
            #expect(log.text == "A T T")
            #expect(!observer.isValid)
        }
    }

    @Test("an observer that is added to no modes leaves the others as they are")
    func noModes() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.observe(.beforeTimers) { log("A") }
            loop.add(Observer(activities: .all) { _, _ in log("B") }, forMode: [])
            loop.timer(10) { _ in log("T") }
            loop.run(in: .default)
            #expect(log.text == "A T")
        }
    }

    @Test("a signalled source that is added to no modes waits for its first one")
    func sourceInNoModes() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let source = CustomSource { _ in log("S") }
            source.signal()
            loop.add(source, forMode: [])
            #expect(loop.poll() == .finished)
            loop.add(source, forMode: .default)
            loop.poll()
            #expect(log.text == "S")
        }
    }
}
