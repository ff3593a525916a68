import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@_spi(Ports) @testable import RunLoopCore

@Suite("Nested runs")
struct NestedRunTests {
    @Test("fifty runs nest in blocks, and each returns to the one around it (R89)")
    func fiftyDeepInBlocks() {
        withSimulation { simulation in
            let loop = simulation.loop
            var (depth, deepest, returned) = (0, 0, [Int]())
            func descend(_ level: Int) {
                depth += 1
                deepest = max(deepest, depth)
                if level < 50 {
                    loop.perform { descend(level + 1) }
                    #expect(loop.run(in: .default) == .finished)
                }
                depth -= 1
                returned.append(level)
            }
            loop.perform { descend(1) }
            #expect(loop.run(in: .default) == .finished)
            #expect(deepest == 50)
            #expect(returned == Array((1...50).reversed()))
            #expect(loop.now == ms(0))
            loop.checkInvariants()
        }
    }

    @Test("fifty due timers, each of which runs the loop nested, fire inside one another, once each (R89, R93)")
    func fiftyDeepInTimers() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            for level in 1...50 {
                loop.timer(10) { _ in
                    log("\(level)<")
                    loop.run(in: .default, until: loop.now)
                    loop.checkInvariants()
                    log("\(level)>")
                }
            }
            #expect(loop.run(in: .default) == .finished)
            #expect(log.entries == (1...50).map { "\($0)<" } + (1...50).reversed().map { "\($0)>" })
            #expect(loop.statistics.fires == 50)
            #expect(loop.now == ms(10))
        }
    }

    @Test("five hundred runs nest in another")
    func fiveHundredDeep() {
        withSimulation { simulation in
            let loop = simulation.loop
            var depth = 0
            func descend() {
                depth += 1
                guard depth <= RunLoop.deepestNesting else { return }
                loop.perform(afterDelay: .zero) { descend() }
                loop.run(in: .default, until: loop.now)
            }
            loop.perform(afterDelay: .zero) { descend() }
            #expect(loop.run(in: .default) == .finished)
            #expect(depth == RunLoop.deepestNesting + 1)
            loop.checkInvariants()
        }
    }

    @Test(
        "if a limit passes in a nested run, the outer run returns, and timers due meanwhile fire in the next run (R94)"
    )
    func limitPassesInNestedRun() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.keepAlive(in: .tracking)
            loop.timer(10) { _ in
                #expect(loop.run(in: .tracking, until: ms(80)) == .timedOut)
                log("nested@\(loop.now.word)")
            }
            loop.timer(60) { _ in log("due@\(loop.now.word)") }
            loop.timer(90) { _ in log("later@\(loop.now.word)") }
            #expect(loop.run(in: .default, until: ms(50)) == .timedOut)
            #expect(log.text == "nested@80")
            #expect(loop.now == ms(80))
            #expect(loop.run(in: .default, until: ms(80)) == .timedOut)
            #expect(log.text == "nested@80 due@80")
        }
    }

    @Test("if a limit passes in a run nested in a block or an observer, the outer run returns without a sleep (R94)")
    func limitPassesBeforeTheSleep() {
        for isBlock in [true, false] {
            withSimulation { simulation in
                let (loop, log) = (simulation.loop, Log<String>())
                func runNested() {
                    #expect(loop.run(in: .default, until: ms(80)) == .timedOut)
                    log("nested@\(loop.now.word)")
                }
                if isBlock {
                    loop.perform { runNested() }
                } else {
                    loop.observe(.beforeWaiting, repeats: false) { runNested() }
                }
                loop.timer(60) { _ in log("due@\(loop.now.word)") }
                loop.timer(150) { _ in log("later@\(loop.now.word)") }
                #expect(loop.run(in: .default, until: ms(50)) == .timedOut)
                #expect(log.text == "due@60 nested@80")
                #expect(loop.now == ms(80))
                loop.run(in: .default)
                #expect(log.text == "due@60 nested@80 later@150")
            }
        }
    }

    @Test(
        "if a nested run ends at the limit of the outer run, a timer due then fires before the outer returns (R35, R94)"
    )
    func nestedRunEndsAtLimit() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.keepAlive(in: .tracking)
            loop.timer(10) { _ in
                #expect(loop.run(in: .tracking, until: ms(50)) == .timedOut)
                log("nested@\(loop.now.word)")
            }
            loop.timer(50) { _ in log("due@\(loop.now.word)") }
            loop.timer(60) { _ in log("later@\(loop.now.word)") }
            #expect(loop.run(in: .default, until: ms(50)) == .timedOut)
            #expect(log.text == "nested@50 due@50")
            #expect(loop.now == ms(50))
        }
    }

    @Test("fifty nested modes are current one after another, and restored on return (R4, R89)")
    func fiftyModes() {
        withSimulation { simulation in
            let loop = simulation.loop
            let modes = (0..<50).map { RunLoop.Mode("nested \($0)") }
            func descend(_ level: Int) {
                #expect(loop.currentMode == modes[level])
                guard level + 1 < 50 else { return }
                loop.perform(inModes: RunLoop.Modes(modes[level + 1])) { descend(level + 1) }
                #expect(loop.run(in: modes[level + 1]) == .finished)
                #expect(loop.currentMode == modes[level])
            }
            #expect(loop.currentMode == nil)
            loop.perform(inModes: RunLoop.Modes(modes[0])) { descend(0) }
            #expect(loop.run(in: modes[0]) == .finished)
            #expect(loop.currentMode == nil)
        }
    }

    @Test("items and observers of the inner mode are called, and of the outer mode are not (R90)")
    func innerModeIsLive() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.observe(log, prefix: "default:")
            loop.observe(log, in: .tracking, prefix: "tracking:")
            let source = CustomSource { _ in log("S:\(loop.currentMode!)") }
            loop.add(source, forMode: .tracking)
            loop.timer(20, in: .tracking) { _ in
                log("T:\(loop.currentMode!)")
                source.signal()
            }
            loop.timer(15) { _ in log("D:\(loop.currentMode!)") }
            loop.timer(10) { _ in
                log("outer<")
                loop.perform(inModes: .tracking) { log("B:\(loop.currentMode!)") }
                loop.run(in: .tracking, until: ms(30))
                log("outer>")
            }
            #expect(loop.run(in: .default) == .finished)
            let inner =
                "tracking:E tracking:BT B:tracking tracking:BW tracking:AW T:tracking tracking:BT "
                + "S:tracking tracking:BT tracking:BW tracking:AW tracking:X"
            #expect(
                log.text == "default:E default:BT default:BW default:AW outer< \(inner) outer> "
                    + "default:BT D:default default:X")
            #expect(loop.now == ms(30))
        }
    }

    @Test("a nested run sees timers left due by the outer pass")
    func seesDueTimers() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.timer(10) { _ in
                log("A<")
                loop.run(in: .default, until: .distantPast)
                log("A>")
            }
            loop.timer(10) { _ in log("B") }
            loop.run(in: .default)
            #expect(log.text == "A< B A>")
        }
    }

    @Test("a timer is not re-entered, however overdue, and its next date is found when its callback returns (R91)")
    func timerIsNotReentered() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.keepAlive()
            loop.timer(10, every: 10) { timer in
                log("\(loop.now.word)<")
                if loop.now == ms(10) { #expect(loop.run(in: .default, until: ms(35)) == .timedOut) }
                log("\(loop.now.word)>")
            }
            loop.run(in: .default, until: ms(50))
            #expect(log.text == "10< 35> 40< 40> 50< 50>")
        }
    }

    @Test("a one-shot that runs its only mode nested keeps that mode from being empty (R92)")
    func firingTimerCounts() {
        withSimulation { simulation in
            let loop = simulation.loop
            loop.timer(10) { _ in
                #expect(!loop.isEmpty(.default))
                #expect(loop.run(in: .default, until: ms(40)) == .timedOut)
                #expect(loop.now == ms(40))
            }
            #expect(loop.run(in: .default) == .finished)
            #expect(loop.now == ms(40))
        }
    }

    @Test("a delayed call that runs its only mode nested keeps that mode from being empty, as a one-shot does")
    func delayedCallCounts() {
        withSimulation { simulation in
            let loop = simulation.loop
            loop.perform(at: ms(10)) { #expect(loop.run(in: .default, until: ms(40)) == .timedOut) }
            #expect(loop.run(in: .default) == .finished)
            #expect(loop.now == ms(40))
        }
    }

    @Test("what fired in the nested run is not fired again by the outer pass (R93)")
    func notFiredTwice() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.timer(10) { _ in
                log("A<")
                loop.run(in: .default, until: ms(15))
                log("A>")
            }
            loop.timer(10, every: 100) { _ in log("B\(loop.now.word)") }
            loop.run(in: .default, until: ms(200))
            #expect(log.text == "A< B10 A> B110")
        }
    }

    @Test("an outer limit that passes during a nested run takes effect when control returns (R94)")
    func outerLimit() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.keepAlive()
            loop.keepAlive(in: .tracking)
            loop.timer(70) { _ in log("T70") }
            loop.timer(10) { _ in
                #expect(loop.run(in: .tracking, until: ms(100)) == .timedOut)
                log("nested ended at \(loop.now.word)")
            }
            #expect(loop.run(in: .default, until: ms(50)) == .timedOut)
            #expect(loop.now == ms(100))
            #expect(log.entries == ["nested ended at 100"])
            loop.run(in: .default, until: .distantPast)
            #expect(log.entries == ["nested ended at 100", "T70"])
        }
    }

    @Test("a run nested in an observer or a source is as good as any (R89)")
    func nestedElsewhere() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.timer(5, in: .tracking) { _ in log("T") }
            loop.observe(.beforeTimers, repeats: false) {
                log("O<")
                #expect(loop.run(in: .tracking) == .finished)
                log("O>")
            }
            let source = CustomSource { _ in
                log("S<")
                loop.timer(8, in: .tracking) { _ in log("T") }
                #expect(loop.run(in: .tracking) == .finished)
                log("S>")
            }
            loop.add(source, forMode: .default)
            source.signal()
            #expect(loop.run(mode: .default, before: ms(100)))
            #expect(log.text == "O< T O> S< T S>")
            #expect(loop.now == ms(8))
        }
    }
}
