/// Chooses, in an explored simulation, wherever more than one event may legally happen next.
@_spi(Ports) public protocol Chooser {
    /// - Returns: the index of one of the point's lanes, the number of a possibility, or the value of a random
    ///   quantity.
    mutating func choose(at point: ChoicePoint) -> Int
}

/// A place in a run where more than one event may happen next.
@_spi(Ports) public struct ChoicePoint {
    public enum Kind: Equatable {
        /// The choice among several tasks, threads, or events of the world, one of which continues or comes first.
        case task, thread, event
        /// The choice among several possibilities, of which the first is the usual one.
        case possibility
        /// The choice whether something unusual of a kind happens, and which; the first possibility is that nothing
        /// does. `place` is the number of earlier places of the run where the kind could have happened; `most` is how
        /// often it still may.
        case fault(of: String, place: Int, most: Int)
        /// The choice of a random quantity, for which the seed gives `drawn`.
        case quantity(drawn: Int, range: ClosedRange<Int>)
    }

    /// The kind of the choice.
    public let kind: Kind
    /// The number of earlier points of the run. Random quantities and faults are not counted: there are many, which
    /// would hide the other points.
    public let number: Int
    /// The numbers of the tasks, threads or events to choose from. For a possibility or a fault, its own number, once
    /// for each possibility; for a quantity, its own number.
    public let lanes: [Int]
    /// The usual choice.
    public let usual: Int
    /// The lane that names the place: the lane of the task or event that is usually next, of that thread's next turn,
    /// or of the choice.
    let placeLane: Int
    /// The number of earlier steps of the place's lane.
    public let step: Int
    /// The number of the yield at which each lane let others go first, for lanes that have not continued since.
    public let yields: [Int?]
    /// Returns the name of a lane by its number, the number of its earlier turns if it is a task, a thread or an event,
    /// and the machine of a thread that belongs to one.
    let lane: (Int) -> (name: String, turns: Int, machine: String?)
    /// The words for each possibility; `nil` if they follow from the lanes.
    let words: ((Int) -> String)?

    /// Returns the name of a lane, by its number.
    public func name(_ lane: Int) -> String { self.lane(lane).name }
    /// Returns the number of a lane's earlier turns.
    public func turns(_ lane: Int) -> Int { self.lane(lane).turns }
    /// Returns the machine of a thread that belongs to one.
    public func machine(_ lane: Int) -> String? { self.lane(lane).machine }

    /// `true` if the choice is among tasks, threads or events, and not among possibilities.
    public var isAmongLanes: Bool { kind == .task || kind == .thread || kind == .event }

    /// The name of the place.
    public var place: String { name(placeLane) }

    /// The possible choices.
    public var range: ClosedRange<Int> {
        if case .quantity(_, let range) = kind { range } else { 0...lanes.count - 1 }
    }

    /// The names of the possible choices, all different; none for a random quantity. O(n²) in their number.
    public var names: [String] {
        if case .quantity = kind { return [] }
        var names: [String] = []
        for choice in lanes.indices {
            let name = name(ofChoice: choice)
            let copies = sequence(first: 2) { $0 + 1 }.lazy.map { "\(name) (\($0))" }
            names.append(names.contains(name) ? copies.first { !names.contains($0) }! : name)
        }
        return names
    }

    private func name(ofChoice choice: Int) -> String {
        if let words { return words(choice).onOneLine }
        if case .fault = kind { return choice == 0 ? "nothing happens" : place }
        return name(lanes[choice])
    }
}
