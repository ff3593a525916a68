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
    /// The number of earlier turns of a lane, of a task, a thread or an event.
    package let turns: (Int) -> Int
    /// The name of a lane.
    package let name: (Int) -> String
    /// The machine of a thread's lane; `nil` for other lanes, and for threads that belong to no machine.
    package let machine: (Int) -> String?

    /// Whether the choice is who is next, and not what happens.
    package var isAmongLanes: Bool { kind == .task || kind == .thread || kind == .event }

    /// The name of the place.
    package var place: String { name(placeLane) }
}
