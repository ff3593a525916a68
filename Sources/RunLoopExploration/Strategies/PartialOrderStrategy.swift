@_spi(Ports) internal import RunLoopSimulation

/// Draws a priority for each turn, and continues with the highest: POS, by Yuan and others, "Partial Order Aware
/// Concurrency Sampling", in its basic form. The priority of a turn that waits does not change, so a low one waits long.
struct PartialOrderStrategy: Chooser {
    private var numbers: SeededNumbers
    private var rarely: Rarely
    private var priorities: [Int: (turn: Int, priority: UInt64)] = [:]

    init(numbers: SeededNumbers) {
        self.numbers = numbers
        rarely = Rarely([4, 32], &self.numbers)
    }

    mutating func choose(at point: ChoicePoint) -> Int {
        guard point.isAmongLanes else { return rarely.choose(at: point, &numbers) }
        for lane in point.lanes where priorities[lane]?.turn != point.turns(lane) {
            priorities[lane] = (point.turns(lane), numbers.next())
        }
        return point.lanes.indices.max {
            priorities[point.lanes[$0]]!.priority < priorities[point.lanes[$1]]!.priority
        }!
    }
}
