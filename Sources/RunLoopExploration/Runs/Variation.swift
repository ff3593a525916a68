@_spi(Ports) internal import RunLoopSimulation

/// A schedule that repeats the first choices of another one, and leaves all later ones to chance.
struct Variation {
    let token: ScheduleToken
    /// The number of repeated choices.
    let steps: Int
    /// The number of the variation among those with the same number of steps.
    let number: Int

    /// - Parameter length: the known length of a run, over which faults are spread.
    func strategy(length: RunLength) -> any Chooser {
        var numbers = SeededNumbers(seed: token.seed, for: "variation \(number) after \(steps) steps of \(token)")
        let others = Swarm(RandomStrategy(numbers: numbers), for: number, seed: numbers.next(), length: length)
        return PrefixStrategy(ReplayStrategy(token.departures), for: steps, then: others, numbers: numbers)
    }
}

/// Makes a number of choices with one strategy, and the others with another one.
private struct PrefixStrategy: Chooser {
    private var first: ReplayStrategy
    private var left: Int
    private var others: any Chooser
    private var numbers: SeededNumbers
    /// The rarity of values of random quantities other than the seed's.
    private let rarity: Int

    init(_ first: ReplayStrategy, for count: Int, then others: any Chooser, numbers: SeededNumbers) {
        (self.first, left, self.others, self.numbers) = (first, count, others, numbers)
        rarity = [2, 8, 64].randomElement(using: &self.numbers)!
    }

    mutating func choose(at point: ChoicePoint) -> Int {
        guard left == 0 else {
            left -= 1
            return first.choose(at: point)
        }
        // The seed, which has to stay for the first choices, would give the same values in each variation.
        if case .quantity(_, let range) = point.kind, Int.random(in: 0..<rarity, using: &numbers) == 0 {
            return Int.random(in: range, using: &numbers)
        }
        return others.choose(at: point)
    }
}
