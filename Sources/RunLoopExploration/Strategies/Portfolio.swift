@_spi(Ports) internal import RunLoopSimulation

extension Exploration {
    /// A kind of strategy. A `Sendable` value.
    public enum Strategies: Sendable, Hashable, CaseIterable {
        /// Chooses any possibility, at each place.
        case random
        /// Gives tasks and threads random priorities, which change at a few places.
        case priorities
        /// Takes the usual choice, except at one to three places.
        case fewDepartures
        /// Makes all orders of the turns of all or of a few tasks and threads about equally likely.
        case uniform
        /// Takes the turn with the highest priority, which is random and stays as long as the turn waits.
        case partialOrders
        /// Stays near to schedules that showed a new order of two turns, or a new mark.
        case novelty
    }
}

typealias Strategies = Exploration.Strategies

/// The schedules to try.
struct Portfolio {
    let seed: UInt64
    /// Schedules that have failed before.
    let former: [ScheduleToken]
    let strategies: Set<Strategies>

    /// A schedule to try: the seed of its world, the name of its strategy, and the strategy.
    typealias Plan = (seed: UInt64, name: String, strategy: any Chooser)

    /// Returns the plan of a schedule by its number, after runs of `length`.
    func plan(_ number: Int, length: RunLength, novelty: Novelty) -> Plan {
        if number < former.count {
            return (former[number].seed, "a former schedule", ReplayStrategy(former[number].departures))
        }
        if number == former.count { return (seed, "what usually happens", ReplayStrategy([])) }
        var numbers = SeededNumbers(seed: seed, for: "schedule \(number)")
        let world = numbers.next()
        if let near = former.randomElement(using: &numbers), number % Self.formerPeriod == 0 {
            // A schedule that has failed brings its own faults.
            return (world, "near to a failure", NearbyStrategy(near, length: length.points, numbers: numbers))
        }
        let rotation = Self.rotation.filter { strategies.contains($0.kind) }
        let (kind, variant) = rotation[number % rotation.count]
        if kind == .novelty, let near = novelty.draw(&numbers) {
            let keepsFaults = Bool.random(using: &numbers)
            let strategy = NearbyStrategy(near, length: length.points, numbers: numbers)
            guard !keepsFaults else { return (near.seed, Self.nearToNew, strategy) }
            return (near.seed, Self.nearToNew, Swarm(strategy, for: number, seed: seed, length: length))
        }
        let (name, strategy) = Self.make(kind, variant, length, numbers)
        return (world, name, Swarm(strategy, for: number, seed: seed, length: length))
    }

    /// The period of schedules near to a former one, if there are former schedules.
    private static let formerPeriod = 9

    private static let nearToNew = "near to something new"

    /// The kinds, which take turns, each in several variants.
    private static let rotation: [(kind: Strategies, variant: Int)] = [
        (.random, 0), (.uniform, 0), (.fewDepartures, 1), (.partialOrders, 0), (.novelty, 0), (.priorities, 1),
        (.uniform, 1), (.fewDepartures, 2), (.partialOrders, 0), (.uniform, 0), (.priorities, 2), (.fewDepartures, 3),
        (.novelty, 0),
    ]

    private static func make(
        _ kind: Strategies, _ variant: Int, _ length: RunLength, _ numbers: SeededNumbers
    ) -> (name: String, strategy: any Chooser) {
        switch kind {
        case .random: ("random", RandomStrategy(numbers: numbers))
        // Nothing is known to be new yet.
        case .novelty: (nearToNew, RandomStrategy(numbers: numbers))
        case .priorities:
            ("priorities", PriorityStrategy(depth: 1 + variant, length: length.points, numbers: numbers))
        case .fewDepartures:
            (
                "few departures",
                FewDeparturesStrategy(variant, length: length.points, takesTurns: variant == 2, numbers: numbers)
            )
        case .uniform: ("uniform", UniformStrategy(turns: length.turns, isSelective: variant == 1, numbers: numbers))
        case .partialOrders: ("partial orders", PartialOrderStrategy(numbers: numbers))
        }
    }
}
