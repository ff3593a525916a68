import Glibc
import RunLoopExploration
import RunLoopKit
import RunLoopSimulation

/// The figures of the page *How exploration chooses* that belong to none of the programs.
enum Figures {
    static func show() {
        print("| a crash matters only in | schedule | at most |")
        print("|---|---:|---:|")
        for (step, count) in [(10, 200), (200, 200), (10, 1000), (1000, 1000)] {
            let schedules = (0..<5).map { Lateness(step: step, of: count).schedule(seed: $0) ?? .max }.sorted()
            tell("| step \(step) of \(count) | \(schedules[2]) | \(schedules[4]) |")
        }
        print("\n| departures | left | runs | milliseconds |")
        print("|---:|---:|---:|---:|")
        for seed in UInt64(0)..<5 {
            guard let shortened = LongRace.shorten(seed: seed) else { continue }
            tell(
                "| \(shortened.departures) | \(shortened.left) | \(shortened.runs) | \(shortened.milliseconds) |")
        }
        print("")
    }

    /// Prints a line at once, because the next one may take long.
    private static func tell(_ line: String) {
        print(line)
        fflush(nil)
    }
}

/// A program that a crash in one of its steps breaks.
private struct Lateness {
    let step: Int
    let count: Int

    init(step: Int, of count: Int) {
        (self.step, self.count) = (step, count)
    }

    /// - Returns: the number of the schedule that finds the bug.
    func schedule(seed: UInt64) -> Int? {
        let result = Exploration(schedules: 10 * count, seed: seed).run { simulation in
            let (past, isBroken) = (Shared(0), Shared(false))
            simulation.mayHappen("a crash") { if past.value == step { isBroken.value = true } }
            let source = CustomSource { source in
                past.value += 1
                if past.value < count { source.signal() }
            }
            simulation.loop.add(source, forMode: .default)
            source.signal()
            simulation.runUntilIdle()
            try check(!isBroken.value, "it crashed after step \(step)")
        }
        guard case .failed(let finding) = result else { return nil }
        return finding.schedules
    }
}

/// Twenty tasks with thirty steps, a run of some milliseconds, in which chance departs more than a thousand times.
/// Fails if one task makes three steps before two others make one.
private enum LongRace {
    private static func run(_ simulation: Simulation) throws {
        var (steps, isLate) = (0, false)
        var begun: Set<Int> = []
        for number in 0..<20 {
            simulation.loop.task(name: "\(number)") {
                for _ in 0..<30 {
                    await Task.yield()
                    begun.insert(number)
                    if number == 2 { steps += 1 }
                    if steps == 3, begun.isDisjoint(with: [0, 1]) { isLate = true }
                }
            }
        }
        simulation.runUntilIdle()
        try check(!isLate, "task 2 has made \(steps) steps, and tasks 0 and 1 none")
    }

    static func shorten(seed: UInt64) -> (departures: Int, left: Int, runs: Int, milliseconds: Int)? {
        var exploration = Exploration(schedules: 100_000, seed: seed, strategies: [.random])
        exploration.longestShrinking = .zero
        guard case .failed(let long) = exploration.run(run) else { return nil }
        // The failing schedule again, which is now made short.
        let again = Exploration(former: [long.token])
        let begin = ContinuousClock.now
        guard case .failed(let finding) = again.run(run) else { return nil }
        return (
            finding.first.departures.count, finding.token.departures.count, finding.attempts,
            Int(((ContinuousClock.now - begin) / .milliseconds(1)).rounded(.up))
        )
    }
}
