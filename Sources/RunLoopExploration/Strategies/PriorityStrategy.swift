@_spi(Ports) internal import RunLoopSimulation

/// Continues with the first lane of a random order, which changes at a few random places: PCT, by Burckhardt and
/// others, "A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs".
struct PriorityStrategy: Chooser {
    private var numbers: SeededNumbers
    private let rarely: Rarely
    private var priorities: [Int: UInt64] = [:]
    /// The places where the first in the order falls behind all others.
    private let changes: Set<Int>
    private var lowest: UInt64 = 1 << 32

    /// - Parameter depth: one more than the number of changes.
    init(depth: Int, length: Int, numbers: SeededNumbers) {
        var numbers = numbers
        changes = Set((1..<depth).map { _ in Int.random(in: 0..<max(1, length), using: &numbers) })
        rarely = Rarely([4, 32], &numbers)
        self.numbers = numbers
    }

    mutating func choose(at point: ChoicePoint) -> Int {
        guard point.isAmongLanes else { return rarely.choose(at: point, &numbers) }
        if changes.contains(point.number) {
            lowest -= 1
            priorities[point.lanes[ahead(of: point)]] = lowest
        }
        return ahead(of: point)
    }

    private mutating func ahead(of point: ChoicePoint) -> Int {
        for lane in point.lanes where priorities[lane] == nil { priorities[lane] = numbers.next() | 1 << 63 }
        // A lane that lets others go first may wait for them, and would continue forever.
        let free = point.lanes.indices.filter { point.yields[$0] == nil }
        return free.max { priorities[point.lanes[$0]]! < priorities[point.lanes[$1]]! }
            ?? point.lanes.indices.min { point.yields[$0]! < point.yields[$1]! }!
    }
}
