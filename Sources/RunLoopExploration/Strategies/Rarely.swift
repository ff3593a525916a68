@_spi(Ports) internal import RunLoopSimulation

/// Takes the usual one of several possibilities, with rare exceptions: some runs choose the others only seldom.
struct Rarely {
    private let rarity: Int

    /// - Parameter rarities: the possible rarities of the others, of which one is drawn.
    init(_ rarities: [Int], _ numbers: inout SeededNumbers) {
        rarity = rarities.randomElement(using: &numbers)!
    }

    /// Makes a choice that is not among lanes.
    func choose(at point: ChoicePoint, _ numbers: inout SeededNumbers) -> Int {
        if case .quantity(let drawn, _) = point.kind { return drawn }
        guard Int.random(in: 0..<rarity, using: &numbers) == 0 else { return 0 }
        return Int.random(in: 0..<point.lanes.count, using: &numbers)
    }
}
