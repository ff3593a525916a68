import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@Suite("Pauses of a countdown that is late", .timeLimit(.minutes(15)))
struct CountdownPauseTests {
    /// Returns the ticks of a countdown in a number of seconds, each as its second and the remaining count.
    private func ticks(
        seconds length: Int, from count: Int, _ pausing: Countdown.Pausing,
        _ play: (Countdown, Simulation) -> Void
    ) -> [[Int]] {
        withSimulation { simulation in
            var ticks: [[Int]] = []
            let countdown = Countdown(from: count, pausing: pausing) { countdown in
                ticks.append([Int(simulation.now.nanoseconds / 1_000_000_000), countdown.remaining!])
            }
            play(countdown, simulation)
            simulation.advance(to: seconds(Double(length)))
            return ticks
        }
    }

    @Test("a countdown that is paused before its first tick still begins with its full count")
    func pausedBeforeFirstTick() {
        let ticks = ticks(seconds: 5, from: 3, .continuing) { countdown, simulation in
            countdown.resume()
            countdown.pause()
            simulation.advance(by: .seconds(2))
            countdown.resume()
        }
        #expect(ticks == [[2, 3], [3, 2], [4, 1], [5, 0]])
    }

    @Test("intervals that passed before the pause, while the loop was busy, are taken off at the next tick")
    func pausedWhileLate() {
        let ticks = ticks(seconds: 12, from: 6, .continuing) { countdown, simulation in
            countdown.resume()
            simulation.advance(by: .seconds(1))
            // The dates 2, 3 and 4 pass.
            simulation.spend(.milliseconds(3_500))
            countdown.pause()
            simulation.advance(by: .milliseconds(3_500))
            countdown.resume()
        }
        #expect(ticks == [[0, 6], [1, 5], [8, 2], [8, 1], [9, 0]])
    }

    @Test("a countdown that forgets its interval forgets late intervals, too")
    func restartedWhileLate() {
        let ticks = ticks(seconds: 7, from: 3, .restarting) { countdown, simulation in
            countdown.resume()
            simulation.spend(.milliseconds(2_500))
            countdown.pause()
            simulation.spend(.milliseconds(2_500))
            countdown.resume()
        }
        #expect(ticks == [[5, 3], [6, 2], [7, 1]])
    }
}
