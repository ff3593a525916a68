internal import RunLoopSimulation

/// Chooses evenly among tasks and among threads.
struct RandomStrategy: Chooser {
    private var numbers: SeededNumbers
    private let rarely: Rarely

    init(numbers: SeededNumbers) {
        var numbers = numbers
        rarely = Rarely([2, 8, 64], &numbers)
        self.numbers = numbers
    }

    mutating func choose(at point: ChoicePoint) -> Int {
        guard point.isAmongLanes else { return rarely.choose(at: point, &numbers) }
        return Int.random(in: 0..<point.lanes.count, using: &numbers)
    }
}
