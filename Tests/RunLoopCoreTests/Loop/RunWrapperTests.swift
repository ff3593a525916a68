import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@_spi(Ports) @testable import RunLoopCore

@Suite("The ways to run a loop")
struct RunWrapperTests {
    @Test("run(mode:before:) of an empty mode returns false at once (R41)")
    func emptyMode() {
        withSimulation { simulation in
            let loop = simulation.loop
            #expect(!loop.run(mode: .default, before: ms(100)))
            loop.timer(5, in: .tracking) { _ in }
            #expect(!loop.run(mode: .default, before: ms(100)))
            #expect(loop.now == ms(0))
        }
    }

    @Test("run(mode:before:) returns true regardless of how it ended (R41)")
    func everyOutcomeIsTrue() {
        withSimulation { simulation in
            let loop = simulation.loop
            let source = loop.keepAlive()
            #expect(loop.run(mode: .default, before: ms(10)))
            #expect(loop.now == ms(10))
            loop.timer(20) { _ in loop.stop() }
            #expect(loop.run(mode: .default, before: ms(100)))
            #expect(loop.now == ms(20))
            source.signal()
            #expect(loop.run(mode: .default, before: ms(100)))
            #expect(loop.now == ms(20))
            source.invalidate()
            loop.timer(30) { _ in }
            #expect(loop.run(mode: .default, before: ms(100)))
            #expect(loop.now == ms(30))
        }
    }

    @Test("timers fire any number of times before the first source ends run(mode:before:) (R42)")
    func timersMeanwhile() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let source = CustomSource { _ in log("S") }
            loop.add(source, forMode: .default)
            loop.timer(10, every: 10) { _ in log("T") }
            loop.timer(35) { _ in source.signal() }
            #expect(loop.run(mode: .default, before: ms(1000)))
            #expect(log.text == "T T T S")
            #expect(loop.now == ms(35))
        }
    }

    @Test("a limit in the past polls once and returns true (R43)")
    func pastLimit() {
        withSimulation { simulation in
            let loop = simulation.loop
            loop.keepAlive()
            #expect(loop.run(mode: .default, before: .distantPast))
            #expect(loop.statistics.passes == 1)
            #expect(loop.now == ms(0))
        }
    }

    @Test("the last one-shot's fire ends the run early; the next call returns false (R44)")
    func lastOneShot() {
        withSimulation { simulation in
            let loop = simulation.loop
            loop.timer(10) { _ in }
            #expect(loop.run(mode: .default, before: ms(100)))
            #expect(loop.now == ms(10))
            #expect(!loop.run(mode: .default, before: ms(100)))
            #expect(loop.now == ms(10))
        }
    }

    @Test("run(until:) continues after sources, until the date (R45)")
    func runUntil() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let source = CustomSource { _ in log("S\(loop.now.word)") }
            loop.add(source, forMode: .default)
            loop.timer(30, every: 30) { _ in source.signal() }
            loop.run(until: ms(100))
            #expect(log.text == "S30 S60 S90")
            #expect(loop.now == ms(100))
        }
    }

    @Test("run(until:) makes at least one pass when the date is past (R45)")
    func runUntilPast() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.timer(10, every: 10) { _ in log("T") }
            simulation.spend(.milliseconds(15))
            loop.run(until: ms(5))
            #expect(log.text == "T")
            #expect(loop.statistics.passes == 1)
            #expect(loop.now == ms(15))
        }
    }

    @Test("run(until:) ends early when the default mode is empty (R45)")
    func runUntilEmpty() {
        withSimulation { simulation in
            let loop = simulation.loop
            loop.timer(20) { _ in }
            loop.run(until: ms(100))
            #expect(loop.now == ms(20))
            loop.run(until: ms(100))
            #expect(loop.now == ms(20))
        }
    }

    @Test("stop ends neither run(until:) nor run() (R46)")
    func stopDoesNotEnd() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let timer = loop.timer(10, every: 10) { timer in
                log(loop.now.word)
                loop.stop()
                if loop.now == ms(50) { timer.invalidate() }
            }
            loop.run(until: ms(25))
            #expect(log.text == "10 20")
            #expect(loop.now == ms(25))
            loop.run()
            #expect(log.text == "10 20 30 40 50")
            #expect(loop.now == ms(50))
            #expect(!timer.isValid)
        }
    }

    @Test("run() returns at once when the default mode is empty, and runs no other mode (R47, R48)")
    func runOnlyDefault() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.timer(10, in: .tracking) { _ in log("tracking") }
            loop.run()
            loop.run(until: ms(50))
            #expect(loop.now == ms(0))
            loop.timer(20) { _ in log("default") }
            loop.run()
            #expect(log.text == "default")
            #expect(loop.now == ms(20))
        }
    }

    @Test("limitDate fires due timers, never blocks, and returns the earliest date (R49)")
    func limitDate() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.timer(10) { _ in log("T10") }
            loop.timer(40) { _ in log("T40") }
            loop.timer(30) { _ in log("T30") }
            loop.perform { log("B") }
            simulation.spend(.milliseconds(20))
            #expect(loop.limitDate(forMode: .default) == ms(30))
            #expect(log.text == "B T10")
            #expect(loop.now == ms(20))
            loop.checkInvariants()
        }
    }

    @Test("limitDate is nil for an empty mode, also one that has just become empty (R49)")
    func limitDateOfEmptyMode() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            #expect(loop.limitDate(forMode: .default) == nil)
            loop.timer(0) { _ in log("T") }
            #expect(loop.limitDate(forMode: .default) == nil)
            #expect(log.text == "T")
        }
    }

    @Test("limitDate with sources only is the distant future, and serves one of them (R49)")
    func limitDateWithSources() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            for name in ["S1", "S2"] {
                let source = CustomSource { _ in log(name) }
                loop.add(source, forMode: .default)
                source.signal()
            }
            #expect(loop.limitDate(forMode: .default) == .distantFuture)
            #expect(log.text == "S1")
            #expect(loop.limitDate(forMode: .default) == .distantFuture)
            #expect(log.text == "S1 S2")
        }
    }

    @Test("nextFireDate is the date of the earliest timer in the mode, and may have passed (R51)")
    func nextFireDate() {
        withSimulation { simulation in
            let loop = simulation.loop
            #expect(loop.nextFireDate(forMode: .default) == nil)
            loop.keepAlive()
            #expect(loop.nextFireDate(forMode: .default) == nil)
            loop.timer(30) { _ in }
            loop.timer(5, in: .tracking) { _ in }
            let first = loop.timer(20) { _ in }
            #expect(loop.nextFireDate(forMode: .default) == ms(20))
            #expect(loop.nextFireDate(forMode: .tracking) == ms(5))
            simulation.spend(.milliseconds(25))
            #expect(loop.nextFireDate(forMode: .default) == ms(20))
            first.invalidate()
            #expect(loop.nextFireDate(forMode: .default) == ms(30))
        }
    }
}
