internal import RunLoopSimulation

extension Exploration {
    /// A kind of strategy. A value and `Sendable`.
    public enum Strategies: Sendable, Hashable, CaseIterable {
        /// Any possibility, at each place.
        case random
        /// Tasks and threads have priorities, which are random and change at a few places.
        case priorities
        /// The usual choice, except at one to three places.
        case fewDepartures
    }
}

typealias Strategies = Exploration.Strategies

/// The schedules to try.
struct Portfolio {
    /// The seed of the schedules.
    let seed: UInt64
    /// Schedules that have failed before.
    let former: [ScheduleToken]
    let strategies: Set<Strategies>

    /// The schedule with that number.
    ///
    /// - Parameter length: the largest number of places seen in a run.
    /// - Returns: the seed of its world, and the strategy that chooses.
    func schedule(_ number: Int, length: Int) -> (seed: UInt64, any Strategy) {
        if number < former.count { return (former[number].seed, ReplayStrategy(former[number].departures)) }
        // The first schedule is the usual one.
        if number == former.count { return (seed, ReplayStrategy([])) }
        var numbers = SeededNumbers(seed: seed, for: "schedule \(number)")
        let worlds = numbers.next()
        var turns: [(SeededNumbers) -> any Strategy] = []
        for turn in 0..<3 {
            if strategies.contains(.random), turn != 1 { turns.append { RandomStrategy(numbers: $0) } }
            if strategies.contains(.priorities) {
                turns.append { PriorityStrategy(depth: 2 + turn, length: length, numbers: $0) }
            }
            if strategies.contains(.fewDepartures) {
                turns.append {
                    FewDeparturesStrategy(1 + turn, length: length, takesTurns: turn == 1, numbers: $0)
                }
            }
        }
        if let failed = former.randomElement(using: &numbers) {
            turns.append { NearbyStrategy(failed, length: length, numbers: $0) }
        }
        let strategy = turns[number % turns.count](numbers)
        return (worlds, strategy)
    }
}
