import RunLoopCore
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@Suite("A countdown counts whole periods, and knows how to pause", .timeLimit(.minutes(15)))
struct CountdownTests {
    /// Makes a countdown that writes its ticks into a log.
    private func countdown(
        _ log: Log<String>, from count: Int? = nil, _ pausing: Countdown.Pausing,
        tick: @escaping (Countdown) -> Void = { _ in }
    ) -> Countdown {
        let now = { RunLoop.current.now.ms }
        return Countdown(from: count, pausing: pausing) { countdown in
            log("\(now()): \(countdown.remaining.map(String.init) ?? "tick")")
            tick(countdown)
        }
    }

    @Test("X15: resume at 0, pause at 2.5, resume at 4 ticks at 0, 1, 2, then 4, 5, 6")
    func x15() {
        withSimulation { simulation in
            let log = Log<String>()
            let countdown = countdown(log, .restarting)
            #expect(!countdown.isRunning)
            countdown.resume()
            #expect(countdown.isRunning)
            simulation.advance(to: ms(2500))
            countdown.pause()
            #expect(!countdown.isRunning)
            simulation.advance(to: ms(4000))
            countdown.resume()
            simulation.advance(to: ms(6000))
            #expect(log.entries == [0, 1000, 2000, 4000, 5000, 6000].map { "\($0): tick" })
        }
    }

    @Test("restarting: the interval under way is forgotten, and no interval is counted for the tick at once")
    func restarting() {
        withSimulation { simulation in
            let log = Log<String>()
            let countdown = countdown(log, from: 4, .restarting)
            countdown.resume()
            simulation.advance(to: ms(1500))
            countdown.pause()
            simulation.advance(to: ms(3000))
            countdown.resume()
            simulation.advance(to: ms(10_000))
            #expect(log.entries == ["0: 4", "1000: 3", "3000: 3", "4000: 2", "5000: 1", "6000: 0"])
            #expect(!countdown.isRunning)
        }
    }

    @Test("a resume that does nothing is reported")
    func told() {
        withSimulation { simulation in
            let (log, ignored) = (Log<String>(), Log<String>())
            simulation.loop.trace = { if case .ignored(let what) = $0 { ignored(what) } }
            let countdown = countdown(log, from: 2, .continuing)
            countdown.resume()
            countdown.resume()
            simulation.advance(to: ms(5000))
            countdown.resume()
            #expect(
                ignored.entries == [
                    "the countdown (\(countdown.origin)) was resumed, but it is running",
                    "the countdown (\(countdown.origin)) was resumed, but it has finished",
                ])
        }
    }

    @Test("continuing: the interval under way resumes where the pause began")
    func continuing() {
        withSimulation { simulation in
            let log = Log<String>()
            let countdown = countdown(log, from: 3, .continuing)
            countdown.resume()
            simulation.advance(to: ms(1300))
            countdown.pause()
            simulation.advance(to: ms(5000))
            countdown.resume()
            countdown.resume()
            simulation.advance(to: ms(20_000))
            #expect(log.entries == ["0: 3", "1000: 2", "5700: 1", "6700: 0"])
        }
    }

    @Test(
        "resuming one that runs begins a new grid when restarting, and does nothing when continuing",
        arguments: [Countdown.Pausing.restarting, .continuing])
    func resumeRunning(_ pausing: Countdown.Pausing) {
        withSimulation { simulation in
            let log = Log<String>()
            let countdown = countdown(log, pausing)
            countdown.resume()
            simulation.advance(to: ms(1500))
            countdown.resume()
            simulation.advance(to: ms(3000))
            let restarted = ["0: tick", "1000: tick", "1500: tick", "2500: tick"]
            let continued = [0, 1000, 2000, 3000].map { "\($0): tick" }
            #expect(log.entries == (pausing == .restarting ? restarted : continued))
        }
    }

    @Test("a pause before the first tick only puts it off", arguments: [Countdown.Pausing.restarting, .continuing])
    func pauseBeforeFirstTick(_ pausing: Countdown.Pausing) {
        withSimulation { simulation in
            let log = Log<String>()
            let countdown = countdown(log, from: 2, pausing)
            countdown.resume()
            countdown.pause()
            simulation.advance(to: ms(500))
            #expect(log.entries == [])
            countdown.resume()
            simulation.advance(to: ms(5000))
            #expect(log.entries == ["500: 2", "1500: 1", "2500: 0"])
        }
    }

    @Test(
        "a countdown from zero ticks once, also when it is paused before",
        arguments: [Countdown.Pausing.restarting, .continuing])
    func fromZero(_ pausing: Countdown.Pausing) {
        withSimulation { simulation in
            let log = Log<String>()
            let countdown = countdown(log, from: 0, pausing)
            countdown.resume()
            countdown.pause()
            countdown.resume()
            simulation.advance(to: ms(5000))
            #expect(log.entries == ["0: 0"])
            countdown.resume()
            simulation.advance(to: ms(9000))
            #expect(log.entries == ["0: 0"])
        }
    }

    @Test("intervals that a busy loop missed are taken off by the next tick, on the old grid")
    func late() {
        withSimulation { simulation in
            let log = Log<String>()
            let countdown = countdown(log, from: 6, .continuing)
            countdown.resume()
            simulation.advance(to: ms(500))
            simulation.spend(.milliseconds(2800))
            simulation.advance(to: ms(20_000))
            #expect(log.entries == ["0: 6", "3300: 3", "4000: 2", "5000: 1", "6000: 0"])
        }
    }

    @Test("a first tick that is late takes off the intervals that have passed")
    func lateFirstTick() {
        withSimulation { simulation in
            let log = Log<String>()
            let countdown = countdown(log, from: 3, .continuing)
            countdown.resume()
            simulation.spend(.milliseconds(1200))
            simulation.advance(to: ms(20_000))
            #expect(log.entries == ["1200: 2", "2000: 1", "3000: 0"])
        }
    }

    @Test("a pause while the loop is late keeps the missed intervals, and the phase")
    func pauseWhileLate() {
        withSimulation { simulation in
            let log = Log<String>()
            let countdown = countdown(log, from: 9, .continuing)
            countdown.resume()
            simulation.advance(to: ms(0))
            simulation.spend(.milliseconds(3400))
            countdown.pause()
            simulation.advance(to: ms(10_000))
            countdown.resume()
            simulation.advance(to: ms(11_600))
            #expect(log.entries == ["0: 9", "10000: 6", "10600: 5", "11600: 4"])
        }
    }

    @Test("a countdown never goes below zero, however late it is")
    func floor() {
        withSimulation { simulation in
            let log = Log<String>()
            let countdown = countdown(log, from: 2, .continuing)
            countdown.resume()
            simulation.spend(.seconds(100))
            simulation.advance(by: .seconds(10))
            #expect(log.entries == ["100000: 0"])
            #expect(countdown.remaining == 0)
        }
    }

    @Test("a finished countdown does not resume until it is reset")
    func finished() {
        withSimulation { simulation in
            let log = Log<String>()
            let countdown = countdown(log, from: 1, .continuing)
            countdown.resume()
            #expect(simulation.loop.run(in: .default) == .finished)
            countdown.resume()
            countdown.pause()
            countdown.resume()
            #expect(!countdown.isRunning)
            #expect(simulation.loop.run(in: .default) == .finished)
            countdown.reset()
            #expect(countdown.remaining == 1)
            #expect(simulation.loop.run(in: .default) == .finished)
            countdown.resume()
            #expect(simulation.loop.run(in: .default) == .finished)
            #expect(log.entries == ["0: 1", "1000: 0", "1000: 1", "2000: 0"])
        }
    }

    @Test("a countdown is paused and resumed within a tick", arguments: [Countdown.Pausing.restarting, .continuing])
    func pauseInTick(_ pausing: Countdown.Pausing) {
        withSimulation { simulation in
            let log = Log<String>()
            let countdown = countdown(log, from: 3, pausing) { countdown in
                guard countdown.remaining == 2 else { return }
                countdown.pause()
                simulation.spend(.milliseconds(300))
                if simulation.now < ms(2000) { countdown.resume() }
            }
            countdown.resume()
            simulation.advance(to: ms(10_000))
            // Restarting ticks again at the resume, and pauses for good then only if the time has come.
            switch pausing {
            case .restarting:
                #expect(
                    log.entries == ["0: 3", "1000: 2", "1300: 2", "1600: 2", "1900: 2"])
                #expect(!countdown.isRunning)
            case .continuing:
                #expect(log.entries == ["0: 3", "1000: 2", "2300: 1", "3300: 0"])
            }
        }
    }

    @Test("a countdown is reset within a tick, with and without a resume", arguments: [true, false])
    func resetInTick(_ resumes: Bool) {
        withSimulation { simulation in
            let log = Log<String>()
            let countdown = countdown(log, from: 2, .continuing) { countdown in
                guard countdown.remaining == 0, log.entries.count < 4 else { return }
                countdown.reset()
                if resumes { countdown.resume() }
            }
            countdown.resume()
            simulation.advance(to: ms(10_000))
            let once = ["0: 2", "1000: 1", "2000: 0"]
            #expect(log.entries == (resumes ? once + ["2000: 2", "3000: 1", "4000: 0"] : once))
            #expect(countdown.remaining == (resumes ? 0 : 2))
        }
    }

    @Test("a countdown ticks in every mode, and stops when it is dropped, also within a tick")
    func dropped() {
        withSimulation { simulation in
            let log = Log<String>()
            var held: Countdown? = countdown(log, from: 60, .continuing)
            held!.resume()
            simulation.loop.run(in: .tracking, until: ms(1000))
            held = nil
            #expect(simulation.loop.run(in: .tracking) == .finished)
            #expect(log.entries == ["0: 60", "1000: 59"])

            let box = Log<String>()
            var other: Countdown?
            let weak = { Weak(other) }
            other = countdown(box, from: 5, .continuing) { _ in if box.entries.count == 2 { other = nil } }
            let watch = weak()
            other!.resume()
            #expect(simulation.loop.run(in: .default) == .finished)
            #expect(box.entries == ["1000: 5", "2000: 4"])
            #expect(watch.isGone)
        }
    }

    @Test("a countdown belongs to the loop that it was given")
    func loop() {
        withSimulation { simulation in
            let dates = Log<Int64>()
            let thread = LoopThread(name: "counter") { loop in
                loop.perform(afterDelay: .milliseconds(500)) {
                    let countdown = Countdown(from: 2, loop: loop, pausing: .continuing) { _ in
                        dates.append(loop.now.ms)
                    }
                    countdown.resume()
                    loop.run(in: .default)
                }
            }
            thread.join()
            #expect(dates.entries == [500, 1500, 2500])
            #expect(simulation.now == ms(2500))
        }
    }

    @Test("60 s until a code can be sent again, through a drag and a busy second, and its owner goes with it")
    func sendAgain() {
        withSimulation { simulation in
            let log = Log<String>()
            final class Screen {
                var title = ""
                var countdown: Countdown?
                let log: Log<String>
                init(_ log: Log<String>) { self.log = log }
                deinit { log("deinit") }
            }
            var screen: Screen? = Screen(log)
            screen!.countdown = Countdown(from: 60, pausing: .continuing) { [weak screen] countdown in
                screen?.title = countdown.remaining == 0 ? "Send again" : "\(countdown.remaining!) s"
                log("\(RunLoop.current.now.ms): \(screen!.title)")
            }
            screen!.countdown!.resume()
            simulation.drag(from: ms(10_500), until: ms(20_500))
            DeliveryQueue.main.asyncAfter(.milliseconds(30_500)) { simulation.spend(.milliseconds(1700)) }
            simulation.advance(to: ms(90_000))
            var expected = (0...60).map { "\($0 * 1000): " + ($0 == 60 ? "Send again" : "\(60 - $0) s") }
            expected.replaceSubrange(31...32, with: ["32200: 28 s"])
            #expect(log.entries == expected)
            let watch = Weak(screen)
            screen!.countdown!.reset()
            screen!.countdown!.resume()
            screen = nil
            #expect(watch.isGone)
            #expect(simulation.loop.run(in: .default) == .finished)
            #expect(log.entries == expected + ["deinit"])
        }
    }
}
