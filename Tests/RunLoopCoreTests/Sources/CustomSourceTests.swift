import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@_spi(Ports) @testable import RunLoopCore

@Suite("Custom sources")
struct CustomSourceTests {
    private func source(
        _ log: Log<String>, _ name: String, order: Int = 0, in loop: RunLoop, _ modes: RunLoop.Modes = .default
    )
        -> CustomSource
    {
        let source = CustomSource(order: order) { _ in log(name) }
        loop.add(source, forMode: modes)
        return source
    }

    @Test("signalled many times, served once (R66)")
    func servedOnce() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let source = source(log, "S", in: loop)
            for _ in 0..<5 { source.signal() }
            #expect(source.isSignalled)
            loop.run(in: .default, until: ms(10))
            #expect(log.text == "S")
            #expect(!source.isSignalled)
            #expect(loop.statistics.sources == 1)
        }
    }

    @Test("a source that signals itself is served again in the next pass (R66)")
    func signalsItself() {
        withObservedLoop { _, loop, log in
            let source = CustomSource { source in
                log("S")
                #expect(!source.isSignalled)
                if log.entries.count(where: { $0 == "S" }) < 3 { source.signal() }
            }
            loop.add(source, forMode: .default)
            source.signal()
            loop.run(in: .default, until: ms(10))
            #expect(log.text == "E BT S BT S BT S BT BW AW X")
        }
    }

    @Test("signal without a wake-up waits for the next pass; remote.signal wakes (R65)")
    func remoteSignalWakes() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let source = CustomSource { _ in log("S\(loop.now.word)") }
            loop.add(source, forMode: .default)
            let remote = source.remote
            let thread = LoopThread(name: "other") { other in
                other.perform(at: ms(20)) { remote.signal() }
            }
            loop.run(in: .default, until: ms(100))
            #expect(log.text == "S20")
            thread.join()
        }
    }

    @Test("ready sources are served by order, equal ones as they were first signalled (R67)")
    func order() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let sources = [("5", 5), ("-1", -1), ("0a", 0), ("0b", 0), ("max", Int.max)].map {
                source(log, $0.0, order: $0.1, in: loop)
            }
            for index in [4, 3, 0, 2, 1, 3, 4] { sources[index].signal() }
            loop.run(in: .default, until: ms(10))
            #expect(log.text == "-1 0b 0a 5 max")
        }
    }

    @Test("a run that returns after a source serves the first ready one, the others stay signalled (R67)")
    func onlyFirst() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let second = source(log, "second", order: 2, in: loop)
            let first = source(log, "first", order: 1, in: loop)
            second.signal()
            first.signal()
            #expect(loop.run(mode: .default, before: ms(10)))
            #expect(log.text == "first")
            #expect(second.isSignalled)
            #expect(!first.isSignalled)
            #expect(loop.run(mode: .default, before: ms(10)))
            #expect(log.text == "first second")
            #expect(loop.now == ms(0))
        }
    }

    @Test("of the ready sources one invalidated meanwhile is skipped, one removed meanwhile is served (R68)")
    func removedMeanwhile() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            var victims: [CustomSource] = []
            let killer = CustomSource { _ in
                log("killer")
                victims[0].invalidate()
                loop.remove(victims[1], forMode: .default)
            }
            loop.add(killer, forMode: .default)
            killer.signal()
            victims = [source(log, "invalidated", in: loop), source(log, "removed", in: loop)]
            for victim in victims { victim.signal() }
            loop.run(in: .default, until: ms(10))
            #expect(log.text == "killer removed")
            #expect(victims.allSatisfy { !$0.isSignalled })
        }
    }

    @Test("a source signalled by another one is served in the next pass (R68)")
    func signalledMeanwhile() {
        withObservedLoop { _, loop, log in
            let second = source(log, "second", order: 1, in: loop)
            let first = CustomSource { _ in
                log("first")
                second.signal()
            }
            loop.add(first, forMode: .default)
            first.signal()
            loop.run(in: .default, until: ms(10))
            #expect(log.text == "E BT first BT second BT BW AW X")
        }
    }

    @Test("a source of several modes is served in the first that runs, once (R69)")
    func severalModes() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let source = CustomSource { _ in log("S:\(loop.currentMode!)") }
            loop.add(source, forMode: [.default, .tracking])
            source.signal()
            loop.run(in: .tracking, until: ms(10))
            loop.run(in: .default, until: ms(20))
            #expect(log.text == "S:tracking")
        }
    }

    @Test("a signal out of its mode waits for it, and does not keep the loop awake (R8)")
    func waitsForMode() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let source = source(log, "S", in: loop, .tracking)
            loop.keepAlive()
            source.signal()
            loop.run(in: .default, until: ms(10))
            #expect(log.text == "")
            #expect(loop.statistics.passes == 1)
            loop.run(in: .tracking, until: ms(20))
            #expect(log.text == "S")
        }
    }

    @Test("a source signalled before it is added is served once it is in a mode")
    func signalledBeforeAdded() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let source = CustomSource { _ in log("S") }
            source.signal()
            #expect(source.isSignalled)
            loop.add(source, forMode: .default)
            loop.run(in: .default, until: ms(10))
            #expect(log.text == "S")
        }
    }

    @Test("a source that was removed while signalled keeps the signal for the mode it is added to next")
    func removedWhileSignalled() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let source = source(log, "S", in: loop)
            source.signal()
            loop.remove(source, forMode: .default)
            #expect(loop.isEmpty(.default))
            loop.add(source, forMode: .tracking)
            loop.run(in: .tracking, until: ms(10))
            #expect(log.text == "S")
        }
    }

    @Test("schedule and cancel handlers are called once for each mode that is joined and left (R70)")
    func scheduleAndCancel() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.addCommonMode(.tracking)
            let source = CustomSource()
            source.scheduleHandler = { log("+\($1)") }
            source.cancelHandler = { log("-\($1)") }
            loop.add(source, forMode: .common)
            loop.add(source, forMode: .default)
            loop.add(source, forMode: "panel")
            #expect(log.text == "+default +tracking +panel")
            log.clear()
            loop.remove(source, forMode: .default)
            loop.remove(source, forMode: .default)
            #expect(log.text == "-default")
            log.clear()
            source.invalidate()
            source.invalidate()
            #expect(log.text == "-tracking -panel")
            loop.checkInvariants()
        }
    }

    @Test("at the end of its loop a source's cancel handler is called (R6)")
    func cancelAtEnd() {
        let log = Log<String>()
        withSimulation { simulation in
            let source = CustomSource { _ in log("S") }
            source.cancelHandler = { log("-\($1)") }
            simulation.loop.add(source, forMode: [.default, .tracking])
            source.signal()
        }
        #expect(log.text == "-default -tracking")
    }

    @Test("invalidation unsignals, leaves every mode, and is for good (R71)")
    func invalidation() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let source = source(log, "S", in: loop, [.default, .tracking])
            source.signal()
            source.invalidate()
            #expect(!source.isValid)
            #expect(!source.isSignalled)
            #expect(loop.isEmpty(.default))
            #expect(loop.isEmpty(.tracking))
            source.signal()
            #expect(!source.isSignalled)
            loop.add(source, forMode: .default)
            #expect(loop.isEmpty(.default))
            loop.timer(10) { _ in }
            loop.run(in: .default)
            #expect(log.text == "")
        }
    }

    @Test("a source is not re-entered by a nested run, and served again afterwards")
    func notReentered() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            var depth = 0
            let source = CustomSource { source in
                depth += 1
                log("S<\(depth)")
                if log.entries.count == 1 {
                    source.signal()
                    #expect(loop.run(in: .default, until: ms(20)) == .timedOut)
                    #expect(source.isSignalled)
                }
                log("S>\(depth)")
                depth -= 1
            }
            loop.add(source, forMode: .default)
            source.signal()
            loop.run(in: .default, until: ms(30))
            #expect(log.text == "S<1 S>1 S<1 S>1")
        }
    }

    @Test("a source that invalidates itself in its handler is freed when the handler returns")
    func freed() {
        withSimulation { simulation in
            let loop = simulation.loop
            weak var weakSource: CustomSource?
            weak var weakToken: Token?
            do {
                let token = Token()
                let source = CustomSource { source in
                    source.invalidate()
                    token.touch()
                    #expect(weakToken != nil)
                }
                (weakSource, weakToken) = (source, token)
                loop.add(source, forMode: .default)
                source.signal()
            }
            #expect(weakSource != nil)
            #expect(loop.run(in: .default) == .finished)
            #expect(weakToken == nil)
            #expect(weakSource == nil)
        }
    }

    @Test("remote.signal of a source that is gone, or in no loop, does nothing")
    func remoteOfGone() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            var source: CustomSource? = source(log, "S", in: loop)
            let remote = source!.remote
            remote.signal()
            source!.invalidate()
            source = nil
            remote.signal()
            loop.keepAlive()
            loop.run(in: .default, until: ms(10))
            #expect(log.text == "")
        }
    }

    @Test("a signalled source is served in constant time, however many are signalled")
    func manySignalled() {
        withSimulation { simulation in
            let loop = simulation.loop
            var served = 0
            let sources = (0..<8000).map { _ in CustomSource { _ in served += 1 } }
            for source in sources { loop.add(source, forMode: .default) }
            let growth = growth(from: 250, to: sources.count) { count in
                for source in sources.prefix(count) { source.signal() }
                loop.run(in: .default, until: .distantPast)
            }
            #expect(served == 5 * (250 + sources.count))
            #expect(growth < 8, "32 would be a look at all of them")
        }
    }

    @Test("sources are called in the order of their signals, also if nested runs in other modes have passed them over")
    func passedOver() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.keepAlive(in: .tracking)
            let early = CustomSource { _ in log("early") }
            let late = CustomSource { _ in log("late") }
            let first = CustomSource(order: -1) { _ in
                loop.poll(in: .tracking)
                loop.poll(in: "panel")
            }
            loop.add(early, forMode: [.default, "panel"])
            loop.add(late, forMode: "panel")
            loop.add(first, forMode: .default)
            for source in [early, late, first] { source.signal() }
            loop.poll()
            #expect(log.text == "early late")
        }
    }
}
