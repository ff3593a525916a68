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

    /// A schedule to try: the seed of its world, the name of its strategy, and the strategy.
    typealias Plan = (seed: UInt64, name: String, strategy: any Chooser)

    /// The schedule with that number.
    ///
    /// - Parameter length: the lengths of the longest runs so far.
    func plan(_ number: Int, length: RunLength) -> Plan {
        if number < former.count {
            return (former[number].seed, "a former schedule", ReplayStrategy(former[number].departures))
        }
        if number == former.count { return (seed, "what usually happens", ReplayStrategy([])) }
        var numbers = SeededNumbers(seed: seed, for: "schedule \(number)")
        let world = numbers.next()
        var turns: [(name: String, make: (SeededNumbers) -> any Chooser)] = []
        for turn in 0..<3 {
            if strategies.contains(.random), turn != 1 { turns.append(("random", { RandomStrategy(numbers: $0) })) }
            if strategies.contains(.priorities) {
                turns.append(("priorities", { PriorityStrategy(depth: 2 + turn, length: length.points, numbers: $0) }))
            }
            guard strategies.contains(.fewDepartures) else { continue }
            turns.append(
                (
                    "few departures",
                    { FewDeparturesStrategy(1 + turn, length: length.points, takesTurns: turn == 1, numbers: $0) }
                ))
        }
        if let failed = former.randomElement(using: &numbers) {
            turns.append(("near to a failure", { NearbyStrategy(failed, length: length.points, numbers: $0) }))
        }
        let (name, make) = turns[number % turns.count]
        let strategy = make(numbers)
        // A schedule that has failed brings its own faults.
        guard !(strategy is NearbyStrategy) else { return (world, name, strategy) }
        return (world, name, Swarm(strategy, for: number, seed: seed, length: length))
    }
}
