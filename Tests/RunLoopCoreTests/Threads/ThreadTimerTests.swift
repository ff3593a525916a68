import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@Suite("A thread ends when the timer on it is invalid", .timeLimit(.minutes(15)))
struct ThreadTimerTests {
    @Test("the timer fires on the thread, which ends when the timer has been invalidated")
    func repeating() {
        withStory { simulation, story in
            let here = threadNumber()
            let elsewhere = Counter()
            let thread = LoopThread(name: "worker") { _ in
                var ticks = 0
                Timer.scheduledTimer(withTimeInterval: .seconds(2), repeats: true) { timer in
                    ticks += 1
                    story.tell("tick \(ticks)")
                    if threadNumber() != here { elsewhere.add() }
                    if ticks == 3 { timer.invalidate() }
                }
            }
            thread.join()
            story.tell("ended")
            #expect(story.lines == ["2.0 tick 1", "4.0 tick 2", "6.0 tick 3", "6.0 ended"])
            #expect(elsewhere.value == 3)
        }
    }

    @Test("with a one-shot the thread ends after the fire")
    func oneShot() {
        withStory { _, story in
            let thread = LoopThread(name: "worker") { _ in
                Timer.scheduledTimer(withTimeInterval: .seconds(5), repeats: false) { _ in story.tell("fire") }
            }
            thread.join()
            story.tell("ended")
            #expect(story.lines == ["5.0 fire", "5.0 ended"])
        }
    }

    @Test("in the common modes the timer fires through a nested run on its thread as well")
    func commonModes() {
        withStory { simulation, story in
            let thread = LoopThread(name: "worker") { loop in
                loop.addCommonMode(.tracking)
                loop.add(Timer(timeInterval: .seconds(2), repeats: true) { _ in story.tell("tick") }, forMode: .common)
                loop.perform(at: seconds(3)) { loop.run(in: .tracking, until: seconds(7)) }
            }
            simulation.advance(to: seconds(9))
            #expect(story.lines == ["2.0 tick", "4.0 tick", "6.0 tick", "8.0 tick"])
            thread.stop()
            thread.join()
        }
    }

    @Test("a stopped thread ends with its timer still scheduled, and releases the timer's captures")
    func stopped() {
        withStory { simulation, story in
            let thread = LoopThread(name: "worker") { _ in
                let token = Token { story.tell("released") }
                Timer.scheduledTimer(withTimeInterval: .seconds(2), repeats: true) { _ in
                    token.touch()
                    story.tell("tick")
                }
            }
            simulation.advance(to: seconds(5))
            thread.stop()
            thread.join()
            story.tell("joined")
            #expect(story.lines == ["2.0 tick", "4.0 tick", "5.0 released", "5.0 joined"])
        }
    }
}
