import RunLoopKit
import TestSupport
import Testing

@testable import RunLoopSimulation

@Suite("Random simulations of several loops", .timeLimit(.minutes(5)))
struct RandomThreadTests {
    /// Returns the trace of loops that post to one another, wait for one another, work and move dates. With a larger
    /// `work`, more of them are overloaded.
    private static func trace(seed: UInt64, work: Duration) -> [String] {
        withSimulation(traced: true) { simulation in
            var generator = SeededGenerator(seed: seed)
            let remotes = Log<RunLoop.Remote>()
            remotes.append(simulation.loop.remote)
            let threads = (0..<Int.random(in: 1...10, using: &generator)).map { number in
                let seed = UInt64.random(in: 0 ... .max, using: &generator)
                return LoopThread(name: "l\(number)") { loop in
                    var generator = SeededGenerator(seed: seed)
                    for index in 0..<Int.random(in: 1...4, using: &generator) {
                        let period = Duration.milliseconds(Int.random(in: 1...20, using: &generator))
                        let kind = Int.random(in: 0..<7, using: &generator)
                        let target = Int.random(in: 0..<11, using: &generator)
                        let timer = Timer(timeInterval: period, repeats: kind != 5) { timer in
                            let other = remotes.entries[target % remotes.entries.count]
                            switch kind {
                            case 0: other.perform { _ in simulation.note("post \(number) \(index)") }
                            case 1: simulation.spend(work)
                            case 2: loop.perform(afterDelay: period) { simulation.note("call") }
                            case 3: timer.fireDate = simulation.now + period * 2
                            case 4: other.perform { _ in simulation.spend(work) }
                            case 6:
                                do {
                                    try other.performAndWait { _ in simulation.spend(work / 2) }
                                } catch {
                                    simulation.note("\(error)")
                                }
                            default: break
                            }
                        }
                        timer.tolerance = .milliseconds(index)
                        loop.add(timer, forMode: .default)
                    }
                }
            }
            for thread in threads { remotes.append(thread.remote) }
            simulation.advance(by: .milliseconds(50))
            simulation.runUntilIdle(limit: .milliseconds(50))
            // All are stopped before one is waited for: while one runs its accepted blocks, others would accept more.
            // For every second seed the end of the simulation ends them.
            if seed.isMultiple(of: 2) {
                for thread in threads { thread.stop() }
                for thread in threads { thread.join() }
            }
            return simulation.trace
        }
    }

    @Test("every random simulation ends, and is the same each time", arguments: [100, 2_000, 10_000])
    func ends(microseconds: Int) {
        for seed in 0..<12 as Range<UInt64> {
            let traces = (0..<2).map { _ in Self.trace(seed: seed, work: .microseconds(microseconds)) }
            #expect(traces[0] == traces[1], "seed \(seed)")
        }
    }
}
