import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@testable import RunLoopCore

@Suite("Stop and wakeUp")
struct StopTests {
    // MARK: Stop

    @Test("stop ends the innermost run only (R82)")
    func innermostOnly() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.keepAlive()
            loop.timer(10) { _ in
                loop.timer(20) { _ in
                    loop.stop()
                    loop.stop()
                    loop.stop()
                }
                #expect(loop.run(in: .default, until: ms(100)) == .stopped)
                log("inner ended at \(loop.now.word)")
            }
            #expect(loop.run(in: .default, until: ms(200)) == .timedOut)
            #expect(log.entries == ["inner ended at 20"])
            #expect(loop.now == ms(200))
        }
    }

    @Test("stop after a nested run has returned ends the outer one (R82)")
    func outerAfterInner() {
        withSimulation { simulation in
            let loop = simulation.loop
            loop.keepAlive()
            loop.timer(10) { _ in
                #expect(loop.run(in: .default, until: ms(30)) == .timedOut)
                loop.stop()
            }
            #expect(loop.run(in: .default, until: ms(200)) == .stopped)
            #expect(loop.now == ms(30))
        }
    }

    @Test("a stop in a timer lets the other due timers and the blocks of the pass run (R83)")
    func stepGoesOn() {
        withObservedLoop { _, loop, log in
            loop.keepAlive()
            loop.timer(10) { _ in
                log("A")
                loop.stop()
                loop.perform { log("B") }
            }
            loop.timer(10) { _ in log("C") }
            loop.timer(20) { _ in log("D") }
            #expect(loop.run(in: .default, until: ms(100)) == .stopped)
            #expect(log.text == "E BT BW AW A C B X")
        }
    }

    @Test("a stop in a block lets the rest of the batch run, and no sleep follows (R83)")
    func stopInBlock() {
        withObservedLoop { _, loop, log in
            loop.keepAlive()
            loop.perform {
                log("B1")
                loop.stop()
            }
            loop.perform { log("B2") }
            #expect(loop.run(in: .default, until: ms(100)) == .stopped)
            #expect(log.text == "E BT B1 B2 X")
            #expect(loop.now == ms(0))
        }
    }

    @Test("stop from another thread wakes the loop, and a block posted just before still runs (R84)")
    func stopFromAnotherThread() {
        withObservedLoop { _, loop, log in
            loop.keepAlive()
            let remote = loop.remote
            let ran = Flag()
            let thread = LoopThread(name: "other") { other in
                other.perform(at: ms(20)) {
                    remote.perform { _ in ran.set() }
                    remote.stop()
                }
            }
            #expect(loop.run(in: .default, until: ms(100)) == .stopped)
            #expect(loop.now == ms(20))
            #expect(ran.isSet)
            #expect(log.text == "E BT BW AW X")
            thread.join()
        }
    }

    @Test("stop from another thread ends only the innermost run")
    func remoteStopIsInnermost() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.keepAlive()
            let remote = loop.remote
            let thread = LoopThread(name: "other") { other in
                other.perform(at: ms(20)) { remote.stop() }
            }
            loop.timer(10) { _ in
                #expect(loop.run(in: .default, until: ms(50)) == .stopped)
                log("inner ended at \(loop.now.word)")
            }
            #expect(loop.run(in: .default, until: ms(100)) == .timedOut)
            #expect(log.entries == ["inner ended at 20"])
            thread.join()
        }
    }

    @Test("a remote stop before the run is not lost, where loop.stop() is a no-op")
    func remoteStopIsQueued() {
        withSimulation { simulation in
            let loop = simulation.loop
            loop.keepAlive()
            #expect(loop.remote.stop())
            #expect(loop.run(in: .default, until: ms(100)) == .stopped)
            #expect(loop.now == ms(0))
            #expect(loop.run(in: .default, until: ms(100)) == .timedOut)
        }
    }

    // MARK: wakeUp

    @Test("wakeUp from another thread ends the sleep; one more pass, and no timer fires early (R85)")
    func wakeUpFromAnotherThread() {
        withObservedLoop { _, loop, log in
            loop.timer(50) { _ in log("T\(loop.now.word)") }
            let remote = loop.remote
            let thread = LoopThread(name: "other") { other in
                other.perform(at: ms(20)) { remote.wakeUp() }
            }
            #expect(loop.run(in: .default) == .finished)
            #expect(log.text == "E BT BW AW BT BW AW T50 X")
            #expect(loop.statistics.waits == 2)
            thread.join()
        }
    }

    @Test("wakeUp before the sleep makes it return at once, and two are as good as one (R86)")
    func wakeUpIsRemembered() {
        let activities: [RunLoop.Activity] = [.beforeTimers, .beforeSources]
        for activity in activities {
            withObservedLoop { _, loop, log in
                loop.timer(50) { _ in log("T") }
                loop.observe(activity, repeats: false) {
                    loop.wakeUp()
                    loop.wakeUp()
                }
                loop.run(in: .default)
                #expect(log.text == "E BT BT BW AW T X", "\(activity)")
                #expect(loop.statistics.waits == 1)
            }
        }
    }

    @Test("wakeUp in a block or a beforeWaiting observer ends the coming sleep (R86)")
    func wakeUpInBlock() {
        withObservedLoop { _, loop, log in
            loop.timer(50) { _ in log("T") }
            loop.observe(.beforeWaiting, repeats: false) { loop.wakeUp() }
            loop.run(in: .default)
            #expect(log.text == "E BT BW AW BT BW AW T X")
            #expect(loop.statistics.waits == 1)

            log.clear()
            loop.timer(100) { _ in log("T") }
            loop.perform {
                log("B")
                loop.wakeUp()
            }
            loop.run(in: .default)
            #expect(log.text == "E BT B BT BW AW T X")
        }
    }

    @Test("wakeUp while timers fire is absorbed by the pass that follows anyway (R87)")
    func wakeUpInTimer() {
        withObservedLoop { _, loop, log in
            loop.timer(10) { _ in
                log("T")
                loop.wakeUp()
            }
            loop.timer(20) { _ in log("T") }
            loop.run(in: .default)
            #expect(log.text == "E BT BW AW T BT BW AW T X")
            #expect(loop.statistics.passes == 2)
        }
    }

    @Test("wakeUp of a loop that is not running is dropped (R87)")
    func wakeUpBeforeRun() {
        withObservedLoop { _, loop, log in
            loop.timer(10) { _ in log("T") }
            loop.wakeUp()
            loop.run(in: .default)
            #expect(log.text == "E BT BW AW T X")
        }
    }

    @Test("wakeUp in every beforeWaiting observer makes the loop go round without sleeping (R88)")
    func wakeUpEveryTime() {
        withSimulation { simulation in
            let loop = simulation.loop
            loop.keepAlive()
            var rounds = 0
            loop.observe(.beforeWaiting) {
                rounds += 1
                if rounds < 1000 { loop.wakeUp() } else { loop.stop() }
            }
            #expect(loop.run(in: .default, until: ms(100)) == .stopped)
            #expect(rounds == 1000)
            #expect(loop.statistics.passes == 1000)
            #expect(loop.statistics.waits == 0)
            #expect(loop.now == ms(0))
        }
    }

    // MARK: Posts

    @Test("ten posts to a sleeping loop wake it once")
    func tenPosts() {
        withObservedLoop { _, loop, log in
            loop.keepAlive()
            let remote = loop.remote
            let count = Counter()
            let thread = LoopThread(name: "other") { other in
                other.perform(at: ms(20)) { for _ in 0..<10 { remote.perform { _ in count.add(1) } } }
            }
            #expect(loop.run(in: .default, until: ms(100)) == .timedOut)
            #expect(count.value == 10)
            #expect(log.text == "E BT BW AW BT BW AW X")
            thread.join()
        }
    }

    @Test("a post during a handler is not lost")
    func postDuringHandler() {
        withSimulation { simulation in
            let loop = simulation.loop
            let remote = loop.remote
            let count = Counter()
            loop.timer(10) { _ in remote.perform { _ in count.add(1) } }
            #expect(loop.run(in: .default, until: ms(100)) == .finished)
            loop.run(in: .default, until: ms(100))
            #expect(count.value == 1)
            #expect(loop.now == ms(10))
        }
    }

    @Test("a post to a loop that has ended returns false")
    func postToDeadLoop() {
        let remote = withSimulation { $0.loop.remote }
        #expect(!remote.perform { _ in })
        #expect(!remote.stop())
        #expect(!remote.wakeUp())
    }
}
