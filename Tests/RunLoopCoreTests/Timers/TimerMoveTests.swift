import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@_spi(Ports) @testable import RunLoopCore

@Suite("Timers whose callbacks change more than themselves")
struct TimerMoveTests {
    /// Moves a timer from an inner loop to an outer one of the same thread, at its second fire.
    private func move(by body: @escaping (Timer, _ from: RunLoop, _ to: RunLoop) -> Void) -> String {
        let log = Log<String>()
        withSimulation { outer in
            let first = outer.loop
            for _ in 0..<3 { first.timer(500) { _ in } }
            withSimulation { inner in
                let second = inner.loop
                for _ in 0..<50 { second.perform(at: ms(1_000)) {} }
                second.timer(10, every: 10) { timer in
                    log("\(second.now.word)/\(first.now.word)")
                    guard second.now == ms(20) else { return }
                    second.remove(timer, forMode: .default)
                    body(timer, second, first)
                }
                second.run(in: .default, until: ms(50))
                first.checkInvariants()
                second.checkInvariants()
            }
            first.run(in: .default, until: ms(45))
        }
        return log.text
    }

    @Test("a timer that goes to another loop of its thread in its callback is armed there")
    func movedInCallback() {
        #expect(move { timer, _, to in to.add(timer, forMode: .default) } == "10/0 20/0 50/30 50/40")
    }

    @Test("a date set in the callback before the timer goes to another loop takes no place of the old loop")
    func movedWithDate() {
        let text = move { timer, from, to in
            from.add(timer, forMode: .default)
            timer.fireDate = ms(25)
            from.remove(timer, forMode: .default)
            to.add(timer, forMode: .default)
        }
        #expect(text == "10/0 20/0 50/25 50/35 50/45")
    }

    @Test("a timer that follows a one-shot that ran the loop nested sees the current time")
    func timeAfterNestedRun() {
        withSimulation { simulation in
            let loop = simulation.loop
            var missed: [Int] = []
            let idle = CustomSource()
            loop.add(idle, forMode: .tracking)
            loop.timer(10) { _ in
                loop.run(in: .tracking, until: ms(12))
                simulation.spend(.milliseconds(100))
            }
            loop.timer(10, every: 10) { timer in
                missed.append(timer.missedFires)
                timer.invalidate()
            }
            loop.run(in: .default, until: ms(300))
            #expect(missed == [10])
        }
    }

    @Test("a report of waiting items names the timers of modes that have nothing else")
    func waitingInUserModes() {
        withSimulation { simulation in
            let timer = simulation.loop.timer(5, in: "a mode of the report") { _ in }
            timer.name = "T"
            let text = "timer \"T\" (\(timer.origin)) in a mode of the report, due 0.005000000"
            #expect(simulation.waits.map(\.what) == [text])
        }
    }
}
