@_spi(Ports) internal import RunLoopSimulation

/// Chooses evenly among tasks and among threads.
struct RandomStrategy: Chooser {
    private var numbers: SeededNumbers
    private let rarely: Rarely

    init(numbers: SeededNumbers) {
        self.numbers = numbers
        rarely = Rarely([2, 8, 64], &self.numbers)
    }

    mutating func choose(at point: ChoicePoint) -> Int {
        guard point.isAmongLanes else { return rarely.choose(at: point, &numbers) }
        return Int.random(in: 0..<point.lanes.count, using: &numbers)
    }
}
