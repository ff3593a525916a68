internal import RunLoopSimulation

extension Exploration {
    /// A kind of strategies. A value and `Sendable`.
    public enum Strategies: Sendable, Hashable, CaseIterable {
        /// At each place, anything.
        case random
        /// Tasks and threads have priorities, which are random and change at a few places.
        case priorities
        /// What usually happens, but for one to three places.
        case fewDepartures
    }
}

typealias Strategies = Exploration.Strategies

/// Which schedules are tried.
struct Portfolio {
    /// What they follow from.
    let seed: UInt64
    /// Those that have failed before.
    let former: [ScheduleToken]
    let strategies: Set<Strategies>

    /// The schedule with a number.
    ///
    /// - Parameter length: the most places that a run was seen to have.
    /// - Returns: the seed of its world, and what chooses.
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
