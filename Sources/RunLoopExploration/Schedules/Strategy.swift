internal import RunLoopSimulation

/// Chooses evenly among tasks and among threads. Of possibilities it takes the usual one, except one time in two, in
/// eight, or in sixty-four: some runs choose the others only seldom.
struct RandomStrategy: Chooser {
    private var numbers: SeededNumbers
    private let rarity: Int

    init(numbers: SeededNumbers) {
        var numbers = numbers
        rarity = [2, 8, 64].randomElement(using: &numbers)!
        self.numbers = numbers
    }

    mutating func choose(at point: ChoicePoint) -> Int {
        if case .quantity(let drawn, _) = point.kind { return drawn }
        if point.kind == .possibility && Int.random(in: 0..<rarity, using: &numbers) > 0 { return 0 }
        return Int.random(in: 0..<point.lanes.count, using: &numbers)
    }
}

/// Continues with the first in a random order, which changes at a few random places: PCT, by Burckhardt and others, "A
/// Randomized Scheduler with Probabilistic Guarantees of Finding Bugs".
struct PriorityStrategy: Chooser {
    private var numbers: SeededNumbers
    private var priorities: [Int: UInt64] = [:]
    /// The places where the first in the order falls behind all others.
    private let changes: Set<Int>
    private var lowest: UInt64 = 1 << 32
    private let rarity: Int

    /// - Parameters:
    ///   - depth: one more than the number of changes.
    ///   - length: the number of places in a run.
    init(depth: Int, length: Int, numbers: SeededNumbers) {
        var numbers = numbers
        changes = Set((1..<depth).map { _ in Int.random(in: 0..<max(1, length), using: &numbers) })
        rarity = [4, 32].randomElement(using: &numbers)!
        self.numbers = numbers
    }

    mutating func choose(at point: ChoicePoint) -> Int {
        if case .quantity(let drawn, _) = point.kind { return drawn }
        guard point.kind != .possibility else {
            return Int.random(in: 0..<rarity, using: &numbers) == 0 ? any(point) : 0
        }
        if changes.contains(point.number) {
            lowest -= 1
            priorities[point.lanes[ahead(of: point)]] = lowest
        }
        return ahead(of: point)
    }

    private mutating func any(_ point: ChoicePoint) -> Int {
        Int.random(in: 0..<point.lanes.count, using: &numbers)
    }

    private mutating func ahead(of point: ChoicePoint) -> Int {
        for lane in point.lanes where priorities[lane] == nil { priorities[lane] = numbers.next() | 1 << 63 }
        // A lane that lets others go first may wait for them, and would continue for ever.
        let free = point.lanes.indices.filter { point.yields[$0] == nil }
        return free.max { priorities[point.lanes[$0]]! < priorities[point.lanes[$1]]! }
            ?? point.lanes.indices.min { point.yields[$0]! < point.yields[$1]! }!
    }
}

/// Takes the usual choice except at a few random places.
struct FewDeparturesStrategy: Chooser {
    private var numbers: SeededNumbers
    private let places: Set<Int>
    /// Whether each lane has its turn after the others, instead of continuing as long as it can.
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

/// Departs at the places of a schedule.
struct ReplayStrategy: Chooser {
    private struct Place: Hashable {
        let name: String
        let step: Int
    }

    /// The events that happen instead at each place, the next one last.
    private var departures: [Place: [ScheduleToken.Departure.Instead]] = [:]

    init(_ departures: [ScheduleToken.Departure]) {
        for departure in departures.reversed() {
            self.departures[Place(name: departure.place, step: departure.step), default: []].append(departure.instead)
        }
    }

    mutating func choose(at point: ChoicePoint) -> Int {
        guard !departures.isEmpty else { return point.usual }
        let place = Place(name: point.place, step: point.step)
        let choice: Int?
        switch (departures[place]?.last, point.kind) {
        case (nil, _): choice = nil
        case (.other(let name), _): choice = point.lanes.firstIndex { point.name($0) == name }
        case (.possibility(let value), .quantity(_, let range)): choice = range.contains(value) ? value : nil
        case (.possibility(let number), _): choice = number < point.lanes.count ? number : nil
        }
        guard let choice, choice != point.usual else { return point.usual }
        departures[place]!.removeLast()
        return choice
    }
}

/// Departs near the places of a schedule that has failed before: at one place more or less, or a step earlier or later.
struct NearbyStrategy: Chooser {
    private var replay: ReplayStrategy
    private var few: FewDeparturesStrategy

    init(_ token: ScheduleToken, length: Int, numbers: SeededNumbers) {
        var (numbers, departures) = (numbers, token.departures)
        if let index = departures.indices.randomElement(using: &numbers) {
            let former = departures.remove(at: index)
            let step = former.step + [-1, 0, 1].randomElement(using: &numbers)!
            if step >= 0 && Bool.random(using: &numbers) {
                departures.insert(.init(place: former.place, step: step, instead: former.instead), at: index)
            }
        }
        replay = ReplayStrategy(departures)
        few = FewDeparturesStrategy(
            Int.random(in: 0...1, using: &numbers), length: length, takesTurns: false, numbers: numbers)
    }

    mutating func choose(at point: ChoicePoint) -> Int {
        let choice = replay.choose(at: point)
        switch point.kind {
        case .quantity, .fault: return choice
        case .task, .thread, .event, .possibility: break
        }
        return choice == point.usual ? few.choose(at: point) : choice
    }
}
