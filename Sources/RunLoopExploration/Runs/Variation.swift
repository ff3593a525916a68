internal import RunLoopSimulation

/// A schedule that makes the first choices of another one, and leaves all later ones to chance.
struct Variation {
    let token: ScheduleToken
    /// The number of choices that it repeats.
    let steps: Int
    /// Its number among those that repeat as many.
    let number: Int

    /// - Parameter length: the known length of a run, over which faults are spread.
    func strategy(length: RunLength) -> any Chooser {
        var numbers = SeededNumbers(seed: token.seed, for: "variation \(number) after \(steps) steps of \(token)")
        let others = Swarm(RandomStrategy(numbers: numbers), for: number, seed: numbers.next(), length: length)
        return PrefixStrategy(ReplayStrategy(token.departures), for: steps, then: others, numbers: numbers)
    }
}

/// Makes some choices as one strategy does, and the others as another one.
private struct PrefixStrategy: Chooser {
    private var first: ReplayStrategy
    private var left: Int
    private var others: any Chooser
    private var numbers: SeededNumbers
    /// How rare other values of random quantities are than those of the seed.
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
