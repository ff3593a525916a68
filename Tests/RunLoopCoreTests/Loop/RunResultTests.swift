import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@testable import RunLoopCore

@Suite("Why a run ends")
struct RunResultTests {
    @Test("results have CFRunLoop's numbers")
    func numbers() {
        let results: [RunLoop.RunResult] = [.finished, .stopped, .timedOut, .handledSource]
        #expect(results.map(\.rawValue) == [1, 2, 3, 4])
    }

    @Test("a run with nothing to do returns finished, and no observer is called (R27)")
    func emptyMode() {
        withObservedLoop { _, loop, log in
            #expect(loop.run(in: .default, until: ms(100)) == .finished)
            #expect(loop.run(in: "never named before", until: ms(100)) == .finished)
            #expect(loop.run(in: .default, until: .distantPast) == .finished)
            #expect(log.text == "")
            #expect(loop.now == ms(0))
            #expect(loop.statistics.passes == 0)
        }
    }

    @Test("a mode that becomes empty finishes the run at the end of that pass (R28)")
    func becomesEmpty() {
        withObservedLoop { _, loop, log in
            loop.timer(10) { _ in log("T") }
            #expect(loop.run(in: .default, until: ms(100)) == .finished)
            #expect(log.text == "E BT BW AW T X")
            #expect(loop.now == ms(10))
        }
    }

    @Test("an item removed by an observer before the sleep leaves nothing to sleep for")
    func lastItemGoesBeforeTheSleep() {
        withObservedLoop { _, loop, log in
            let timer = loop.timer(50) { _ in log("T") }
            loop.observe(.beforeTimers) { timer.invalidate() }
            #expect(loop.run(in: .default, until: ms(100)) == .finished)
            #expect(log.text == "E BT X")
            #expect(loop.now == ms(0))
        }
    }

    @Test("stop makes the run return stopped (R29)")
    func stopped() {
        withSimulation { simulation in
            let loop = simulation.loop
            loop.timer(10, every: 10) { _ in if loop.now == ms(30) { loop.stop() } }
            #expect(loop.run(in: .default, until: ms(100)) == .stopped)
            #expect(loop.now == ms(30))
        }
    }

    @Test("a limit that has come makes exactly one pass that does not sleep (R30)")
    func pollIsOnePass() {
        withObservedLoop { simulation, loop, log in
            loop.timer(10, every: 10) { _ in log("T") }
            simulation.spend(.milliseconds(5))
            #expect(loop.run(in: .default, until: ms(5)) == .timedOut)
            #expect(loop.run(in: .default, until: ms(4)) == .timedOut)
            #expect(log.text == "E BT X E BT X")
            #expect(loop.statistics.passes == 2)
            #expect(loop.statistics.waits == 0)
            #expect(loop.now == ms(5))
        }
    }

    @Test("without a limit a run continues for years (R30)")
    func noLimit() {
        withSimulation { simulation in
            let loop = simulation.loop
            let years = Duration.seconds(100 * 365 * 86_400)
            loop.add(Timer(fire: loop.now + years, interval: .zero, repeats: false) { _ in }, forMode: .default)
            #expect(loop.run(in: .default) == .finished)
            #expect(loop.now == ns(0) + years)
        }
    }

    @Test("a handled source returns handledSource only where that is asked for (R31)")
    func handledSource() {
        withSimulation { simulation in
            let loop = simulation.loop
            let source = loop.keepAlive()
            loop.timer(10, every: 10) { _ in source.signal() }
            #expect(loop.run(in: .default, until: ms(35)) == .timedOut)
            #expect(loop.now == ms(35))
            #expect(loop.statistics.sources == 3)
            #expect(loop.run(in: .default, until: ms(100), returnAfterSourceHandled: true) == .handledSource)
            #expect(loop.now == ms(40))
        }
    }

    @Test("timers and blocks are not sources and do not end a run (R32)")
    func timersAreNotSources() {
        withSimulation { simulation in
            let loop = simulation.loop
            loop.timer(10, every: 10) { _ in loop.perform {} }
            #expect(loop.run(in: .default, until: ms(95), returnAfterSourceHandled: true) == .timedOut)
            #expect(loop.now == ms(95))
            #expect(loop.statistics.fires == 9)
            #expect(loop.statistics.blocks == 9)
        }
    }

    @Test("handledSource comes before timedOut, stopped and finished (R33)")
    func handledSourceFirst() {
        withSimulation { simulation in
            let loop = simulation.loop
            let source = CustomSource { source in
                simulation.spend(.milliseconds(200))
                loop.stop()
                source.invalidate()
            }
            loop.add(source, forMode: .default)
            source.signal()
            #expect(loop.run(in: .default, until: ms(100), returnAfterSourceHandled: true) == .handledSource)
        }
    }

    @Test("timedOut comes before stopped and finished (R33)")
    func timedOutBeforeStopped() {
        withSimulation { simulation in
            let loop = simulation.loop
            loop.timer(10) { _ in
                simulation.spend(.milliseconds(200))
                loop.stop()
            }
            #expect(loop.run(in: .default, until: ms(100)) == .timedOut)
            #expect(loop.isEmpty(.default))
        }
    }

    @Test("stopped comes before finished (R33)")
    func stoppedBeforeFinished() {
        withSimulation { simulation in
            let loop = simulation.loop
            loop.timer(10) { _ in loop.stop() }
            #expect(loop.run(in: .default, until: ms(100)) == .stopped)
            #expect(loop.isEmpty(.default))
        }
    }

    @Test("a stop during a source's handler is discarded with its run (R34)")
    func stopDiscarded() {
        withSimulation { simulation in
            let loop = simulation.loop
            let source = CustomSource { _ in loop.stop() }
            loop.add(source, forMode: .default)
            source.signal()
            #expect(loop.run(in: .default, until: ms(10), returnAfterSourceHandled: true) == .handledSource)
            #expect(loop.run(in: .default, until: ms(10), returnAfterSourceHandled: true) == .timedOut)
            #expect(loop.now == ms(10))
        }
    }

    @Test("a stop during a poll is reported as timedOut (R34)")
    func stopInPoll() {
        withSimulation { simulation in
            let loop = simulation.loop
            loop.keepAlive()
            loop.perform { loop.stop() }
            #expect(loop.run(in: .default, until: .distantPast) == .timedOut)
            #expect(loop.run(in: .default, until: ms(10)) == .timedOut)
            #expect(loop.now == ms(10))
        }
    }

    @Test("a timer due exactly at the limit fires before the run returns (R35)")
    func dueAtLimit() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.timer(10, every: 10) { _ in log(loop.now.word) }
            #expect(loop.run(in: .default, until: ms(30)) == .timedOut)
            #expect(log.text == "10 20 30")
            #expect(loop.now == ms(30))
        }
    }

    @Test("on virtual time a run makes passes exactly at its limit until they find nothing to do")
    func passesAtTheLimit() {
        withSimulation { simulation in
            let loop = simulation.loop
            var dates: [RunLoop.Instant] = []
            func call(_ more: Int) {
                dates.append(loop.now)
                if more > 0 { loop.perform(afterDelay: .zero) { call(more - 1) } }
            }
            loop.perform(at: ms(10)) { call(3) }
            loop.timer(20) { _ in }
            #expect(loop.run(in: .default, until: ms(10)) == .timedOut)
            #expect(dates == Array(repeating: ms(10), count: 4))
        }
    }

    @Test("a timer due a nanosecond after the limit does not fire (R35)")
    func dueAfterLimit() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.add(Timer(fire: ns(30_000_001), interval: .zero, repeats: false) { _ in log("T") }, forMode: .default)
            #expect(loop.run(in: .default, until: ms(30)) == .timedOut)
            #expect(log.text == "")
            #expect(loop.now == ms(30))
        }
    }

    @Test("a poll never reports finished, also when it empties the mode (R36)")
    func pollNeverFinishes() {
        withSimulation { simulation in
            let loop = simulation.loop
            loop.timer(0) { _ in }
            #expect(loop.run(in: .default, until: .distantPast) == .timedOut)
            #expect(loop.isEmpty(.default))
            #expect(loop.run(in: .default, until: .distantPast) == .finished)
        }
    }

    @Test("a poll fires every due timer, all blocks and all sources (R37)")
    func pollDoesEverything() {
        withObservedLoop { simulation, loop, log in
            loop.timer(1) { _ in log("T1") }
            loop.timer(2) { _ in log("T2") }
            loop.timer(9) { _ in log("T9") }
            loop.perform { log("B") }
            for name in ["S1", "S2"] {
                let source = CustomSource { _ in log(name) }
                loop.add(source, forMode: .default)
                source.signal()
            }
            simulation.spend(.milliseconds(5))
            #expect(loop.run(in: .default, until: .distantPast) == .timedOut)
            #expect(log.text == "E BT B S1 S2 T1 T2 X")
        }
    }

    @Test("a poll that returns after a source serves only the first one (R37)")
    func pollServesFirst() {
        withObservedLoop { _, loop, log in
            for name in ["S1", "S2"] {
                let source = CustomSource { _ in log(name) }
                loop.add(source, forMode: .default)
                source.signal()
            }
            loop.timer(0) { _ in log("T") }
            for _ in 0..<2 {
                let result = loop.run(in: .default, until: .distantPast, returnAfterSourceHandled: true)
                #expect(result == .handledSource)
            }
            #expect(log.text == "E BT S1 T X E BT S2 X")
        }
    }

    @Test("a stop before the run has no effect on it (R38)")
    func stopBeforeRun() {
        withSimulation { simulation in
            let loop = simulation.loop
            loop.timer(10) { _ in }
            loop.stop()
            #expect(loop.run(in: .default, until: ms(100)) == .finished)
            #expect(loop.now == ms(10))
        }
    }

    @Test("a run that can never wake returns starved")
    func starved() {
        withObservedLoop { _, loop, log in
            loop.keepAlive()
            #expect(loop.run(in: .default) == .starved)
            #expect(log.text == "E BT BW AW X")
            #expect(loop.now == ms(0))
            #expect(!loop.run(mode: .default, before: .distantFuture))
            loop.run()
            #expect(loop.now == ms(0))
        }
    }

    @Test("a parked timer alone starves a run; with a limit it times out")
    func parkedTimerStarves() {
        withSimulation { simulation in
            let loop = simulation.loop
            loop.add(Timer(fire: .distantFuture, interval: .zero, repeats: false) { _ in }, forMode: .default)
            #expect(loop.run(in: .default) == .starved)
            #expect(loop.run(in: .default, until: ms(10)) == .timedOut)
            #expect(loop.now == ms(10))
        }
    }
}
