@_spi(Ports) internal import RunLoopSimulation

/// Makes all orders of the lanes' turns about equally likely: a lane continues with a probability in proportion to its
/// remaining turns. SURW, by Zhao and others, "Selectively Uniform Concurrency Testing".
///
/// With even chances, a lane with few turns would have had all of them before one with many has had half.
struct UniformStrategy: Chooser {
    private var numbers: SeededNumbers
    private var rarely: Rarely
    /// The number of turns that each lane has in a run, by the lane's name.
    private let known: [String: Int]
    /// The number of turns that each lane has in a run, by the lane's number.
    private var all: [Int: Int] = [:]
    /// The lanes whose orders are equally likely; `nil` for all.
    private let selected: Set<String>?
    /// The selected lane that has its turn next. The other selected lanes wait for it.
    private var next: Int?

    /// - Parameter isSelective: `true` to make only the orders of a few lanes equally likely.
    init(turns: [String: Int], isSelective: Bool, numbers: SeededNumbers) {
        (self.numbers, known) = (numbers, turns)
        let few = Int.random(in: 2...4, using: &self.numbers)
        selected = isSelective ? Set(turns.keys.sorted().shuffled(using: &self.numbers).prefix(few)) : nil
        rarely = Rarely([4, 32], &self.numbers)
    }

    mutating func choose(at point: ChoicePoint) -> Int {
        guard point.isAmongLanes else { return rarely.choose(at: point, &numbers) }
        guard let selected else { return weighted(Array(point.lanes.indices), point) }
        let indices = point.lanes.indices.filter { selected.contains(point.name(point.lanes[$0])) }
        if !indices.isEmpty, !indices.contains(where: { point.lanes[$0] == next }) {
            next = point.lanes[weighted(indices, point)]
        }
        let free = point.lanes.indices.filter { !indices.contains($0) || point.lanes[$0] == next }
        let choice = free.randomElement(using: &numbers)!
        if point.lanes[choice] == next { next = nil }
        return choice
    }

    /// Draws one of some lanes, in proportion to their remaining turns.
    private mutating func weighted(_ indices: [Int], _ point: ChoicePoint) -> Int {
        let left = indices.map { turnsLeft(of: point.lanes[$0], at: point) }
        var drawn = Int.random(in: 0..<left.reduce(0, +), using: &numbers)
        for (index, left) in zip(indices, left) {
            guard drawn >= left else { return index }
            drawn -= left
        }
        return indices.last!
    }

    private mutating func turnsLeft(of lane: Int, at point: ChoicePoint) -> Int {
        if all[lane] == nil { all[lane] = known[point.name(lane), default: 1] }
        return max(1, all[lane]! - point.turns(lane))
    }
}
