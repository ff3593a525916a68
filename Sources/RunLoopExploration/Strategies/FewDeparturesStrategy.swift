@_spi(Ports) internal import RunLoopSimulation

/// Takes the usual choice except at a few random places.
struct FewDeparturesStrategy: Chooser {
    private var numbers: SeededNumbers
    private let places: Set<Int>
    /// `true` if each lane has its turn after the others, instead of continuing as long as it can.
    private let takesTurns: Bool
    /// The number of each lane's last turn.
    private var turns: [Int: Int] = [:]

    init(_ count: Int, length: Int, takesTurns: Bool, numbers: SeededNumbers) {
        var numbers = numbers
        places = Set((0..<count).map { _ in Int.random(in: 0..<max(1, length), using: &numbers) })
        self.numbers = numbers
        self.takesTurns = takesTurns
    }

    mutating func choose(at point: ChoicePoint) -> Int {
        if case .quantity(let drawn, _) = point.kind { return drawn }
        var choice = point.usual
        if takesTurns && point.kind != .possibility {
            choice = point.lanes.indices.min {
                turns[point.lanes[$0], default: -1] < turns[point.lanes[$1], default: -1]
            }!
        }
        if places.contains(point.number) {
            let others = point.lanes.indices.filter { $0 != choice }
            choice = others.randomElement(using: &numbers)!
        }
        turns[point.lanes[choice]] = point.number
        return choice
    }
}
