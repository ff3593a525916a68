import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@testable import RunLoopCore

/// The golden traces: the events of one `run(mode:before:)` as observers and callbacks see them.
@Suite("A pass")
struct PassTests {
    @Test("T1: a one-shot fires after the sleep, and the run ends with it")
    func oneShot() {
        withObservedLoop { _, loop, log in
            loop.timer(20) { _ in log("T") }
            #expect(loop.run(mode: .default, before: ms(1000)))
            #expect(log.text == "E BT BW AW T X")
            #expect(loop.now == ms(20))
        }
    }

    @Test("T2: a signalled source is served without a sleep and ends the run")
    func signalledSource() {
        withObservedLoop { _, loop, log in
            let source = CustomSource { _ in log("S0") }
            loop.add(source, forMode: .default)
            source.signal()
            #expect(loop.run(mode: .default, before: ms(1000)))
            #expect(log.text == "E BT S0 X")
            #expect(loop.now == ms(0))
        }
    }

    @Test("T3: a run with only a block returns finished at once, where CFRunLoop sleeps to the limit")
    func onlyBlock() {
        withObservedLoop { _, loop, log in
            loop.perform { log("B") }
            #expect(loop.run(mode: .default, before: ms(1000)))
            #expect(log.text == "E BT B X")
            #expect(loop.now == ms(0))

            loop.perform { log("B") }
            #expect(loop.run(in: .default, until: ms(1000)) == .finished)
            #expect(loop.now == ms(0))
        }
    }

    @Test("T4: a block that a timer enqueues runs at the end of the same pass")
    func blockFromTimer() {
        withObservedLoop { _, loop, log in
            loop.timer(20) { _ in
                log("T")
                loop.perform { log("B") }
            }
            #expect(loop.run(mode: .default, before: ms(1000)))
            #expect(log.text == "E BT BW AW T B X")
            #expect(loop.now == ms(20))
        }
    }

    @Test("T5: a poll fires a due timer and never announces a sleep")
    func poll() {
        withObservedLoop { _, loop, log in
            loop.timer(0) { _ in log("T") }
            #expect(loop.run(mode: .default, before: .distantPast))
            #expect(log.text == "E BT T X")
            #expect(loop.statistics.waits == 0)
        }
    }

    @Test("T6: a timer's callback may run its own mode nested")
    func nestedInTimer() {
        withObservedLoop { _, loop, log in
            loop.keepAlive()
            let inner = Log<String>()
            loop.observe(inner)
            loop.timer(20) { _ in
                log("T<")
                #expect(loop.run(mode: .default, before: ms(50)))
                log("T>")
            }
            #expect(loop.run(mode: .default, before: ms(100)))
            #expect(log.text == "E BT BW AW T< E BT BW AW X T> BT BW AW X")
            #expect(loop.now == ms(100))
        }
    }

    @Test("T8: a pass that serves a source still looks at the due timers")
    func sourceAndTimer() {
        withObservedLoop { _, loop, log in
            let source = CustomSource { _ in log("S0") }
            loop.add(source, forMode: .default)
            source.signal()
            loop.timer(0) { _ in log("T") }
            #expect(loop.run(mode: .default, before: ms(1000)))
            #expect(log.text == "E BT S0 T X")
            #expect(loop.now == ms(0))
        }
    }

    @Test("T9: a source that a timer signals is served in the next pass, without a wake-up")
    func timerSignalsSource() {
        withObservedLoop { _, loop, log in
            let source = CustomSource { _ in log("S0") }
            loop.add(source, forMode: .default)
            loop.timer(20) { _ in
                log("T")
                source.signal()
            }
            #expect(loop.run(mode: .default, before: ms(1000)))
            #expect(log.text == "E BT BW AW T BT S0 X")
            #expect(loop.now == ms(20))
        }
    }

    @Test("T10: timers that are due together fire in one pass")
    func timersTogether() {
        withObservedLoop { _, loop, log in
            loop.timer(20) { _ in log("T1") }
            loop.timer(20) { _ in log("T2") }
            loop.timer(50) { _ in log("T3") }
            #expect(loop.run(mode: .default, before: ms(1000)))
            #expect(log.text == "E BT BW AW T1 T2 BT BW AW T3 X")
            #expect(loop.now == ms(50))
        }
    }

    @Test("T11a: a source signalled by a beforeTimers observer is served in the same pass")
    func signalledBeforeTimers() {
        withObservedLoop { _, loop, log in
            let source = CustomSource { _ in log("S0") }
            loop.add(source, forMode: .default)
            loop.observe(.beforeTimers) { source.signal() }
            #expect(loop.run(mode: .default, before: ms(1000)))
            #expect(log.text == "E BT S0 X")
            #expect(loop.now == ms(0))
        }
    }

    @Test("T11b: a source signalled by a beforeWaiting observer without a wake-up is slept over")
    func signalledBeforeWaiting() {
        withObservedLoop { _, loop, log in
            let source = CustomSource { _ in log("S0") }
            loop.add(source, forMode: .default)
            loop.observe(.beforeWaiting) { source.signal() }
            #expect(loop.run(mode: .default, before: ms(1000)))
            #expect(log.text == "E BT BW AW X")
            #expect(loop.now == ms(1000))
            #expect(source.isSignalled)
        }
    }

    @Test("T13: a stop in the entry observer leaves no pass, but the exit observer is called")
    func stopAtEntry() {
        withObservedLoop { _, loop, log in
            loop.keepAlive()
            loop.observe(.entry) { loop.stop() }
            #expect(loop.run(in: .default, until: ms(1000), returnAfterSourceHandled: true) == .stopped)
            #expect(log.text == "E X")
            #expect(loop.now == ms(0))
            #expect(loop.statistics.passes == 0)
        }
    }

    @Test("T14: a stop in the beforeWaiting observer ends the run without a sleep")
    func stopBeforeWaiting() {
        withObservedLoop { _, loop, log in
            loop.keepAlive()
            loop.observe(.beforeWaiting) { loop.stop() }
            #expect(loop.run(in: .default, until: ms(1000), returnAfterSourceHandled: true) == .stopped)
            #expect(log.text == "E BT BW AW X")
            #expect(loop.now == ms(0))
            #expect(loop.statistics.waits == 0)
        }
    }

    @Test("T15: a repeating timer makes a pass for each fire, and the limit another")
    func repeatingToLimit() {
        withObservedLoop { _, loop, log in
            loop.timer(50, every: 50) { _ in log("R") }
            #expect(loop.run(mode: .default, before: ms(170)))
            #expect(log.text == "E BT BW AW R BT BW AW R BT BW AW R BT BW AW X")
            #expect(loop.now == ms(170))
        }
    }

    @Test("beforeSources follows beforeTimers in every pass, also without timers and sources (R53)")
    func beforeSourcesFollows() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.observe(.beforeTimers) { log("BT") }
            loop.observe(.beforeSources) { log("BS") }
            loop.perform { log("B") }
            loop.run(in: .default)
            #expect(log.text == "BT BS B")
        }
    }

    @Test("blocks run before sources, and once more after them (R52, R56)")
    func blocksAroundSources() {
        withObservedLoop { _, loop, log in
            let source = CustomSource { _ in
                log("S0")
                loop.perform { log("B2") }
            }
            loop.add(source, forMode: .default)
            source.signal()
            loop.perform { log("B1") }
            loop.timer(0) { _ in log("T") }
            loop.run(mode: .default, before: ms(1000))
            #expect(log.text == "E BT B1 S0 B2 T X")
        }
    }

    @Test("observers of a pass that does not sleep see no beforeWaiting and no afterWaiting (R54)")
    func noWaitingWithoutSleep() {
        withObservedLoop { simulation, loop, log in
            loop.keepAlive()
            simulation.spend(.milliseconds(10))
            loop.timer(5) { _ in log("T") }
            loop.run(in: .default, until: ms(20))
            #expect(log.text == "E BT T BT BW AW X")
        }
    }

    @Test("the time of a pass stands still while its callbacks take time, and advances with the next pass")
    func passTime() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            #expect(loop.passTime == ms(0))
            for name in ["A", "B"] {
                loop.timer(10) { _ in
                    simulation.spend(.milliseconds(3))
                    log("\(name) \(loop.passTime.word) \(loop.now.word)")
                }
            }
            loop.timer(11) { _ in
                log("C \(loop.passTime.word)")
                loop.timer(20) { _ in log("nested \(loop.passTime.word)") }
                loop.run(in: .default, until: ms(20))
                log("outer \(loop.passTime.word)")
            }
            loop.run(in: .default)
            #expect(log.text == "A 10 13 B 10 16 C 16 nested 20 outer 20")
        }
    }
}
