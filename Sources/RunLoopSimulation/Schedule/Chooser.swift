/// Chooses, in an explored simulation, wherever more than one thing may legally happen next.
package protocol Chooser {
    /// - Returns: the index of one of the point's lanes; of a possibility, its number; of a random quantity, its value.
    mutating func choose(at point: ChoicePoint) -> Int
}

/// A place in a run where more than one thing may happen next.
package struct ChoicePoint {
    package enum Kind: Equatable {
        /// Which of several tasks continues, which thread, or which event of the world comes first.
        case task, thread, event
        /// Which of several possibilities happens; the first one is the usual one.
        case possibility
        /// Whether something unusual of a kind happens, and which; the first possibility is that nothing does. `place` is
        /// the number of earlier places of the run where the kind could have happened; `most` is how often it still may.
        case fault(of: String, place: Int, most: Int)
        /// The value of a random quantity, for which the seed gives `drawn`.
        case quantity(drawn: Int, range: ClosedRange<Int>)
    }

    package let kind: Kind
    /// The number of earlier points of the run. Random quantities and faults are not counted: they are many, and would
    /// hide the other points.
    package let number: Int
    /// The tasks, threads or events among which the choice is, by number. Of a possibility or a fault, its own
    /// number, once for each possibility; of a quantity, its own number.
    package let lanes: [Int]
    /// The usual choice.
    package let usual: Int
    /// The lane that names the place: that of the task or event which is usually next, of the next turn of that thread, or
    /// of the choice.
    package let placeLane: Int
    /// The number of earlier steps of that lane.
    package let step: Int
    /// The number of the yield at which each lane let others go first, if it has not continued since.
    package let yields: [Int?]
    /// The name of a lane by its number, the number of its earlier turns if it is a task, a thread or an event, and the
    /// machine of a thread that belongs to one.
    package let lane: (Int) -> (name: String, turns: Int, machine: String?)
    /// The words for each possibility; `nil` if they follow from the lanes.
    package let words: ((Int) -> String)?

    package func name(_ lane: Int) -> String { self.lane(lane).name }
    package func turns(_ lane: Int) -> Int { self.lane(lane).turns }
    package func machine(_ lane: Int) -> String? { self.lane(lane).machine }

    /// Whether the choice is who is next, and not what happens.
    package var isAmongLanes: Bool { kind == .task || kind == .thread || kind == .event }

    /// The name of the place.
    package var place: String { name(placeLane) }

    /// The possible choices.
    package var range: ClosedRange<Int> {
        if case .quantity(_, let range) = kind { range } else { 0...lanes.count - 1 }
    }

    /// The names of the possible choices, no two of them equal; none for a random quantity. O(n²) in their number.
    package var names: [String] {
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
