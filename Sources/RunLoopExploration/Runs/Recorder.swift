@_spi(Ports) internal import RunLoopSimulation

/// Makes the choices of one run with another chooser, and notes the departures from the usual choices.
final class Recorder: Chooser {
    private var chooser: any Chooser
    private let journal: Journal?
    /// Receives each choice.
    var record: ((_ choice: Int, _ point: ChoicePoint) -> Void)?
    private(set) var departures: [ScheduleToken.Departure] = []
    private(set) var length = RunLength()
    private(set) var pairs = TurnPairs()
    /// A hash of all choices.
    private(set) var digest: UInt64 = 0xcbf2_9ce4_8422_2325

    init(_ chooser: any Chooser, _ journal: Journal?) {
        (self.chooser, self.journal) = (chooser, journal)
    }

    func choose(at point: ChoicePoint) -> Int {
        let choice = chooser.choose(at: point)
        digest = (digest ^ UInt64(truncatingIfNeeded: choice)) &* 0x0100_0000_01b3
        record?(choice, point)
        if choice != point.usual {
            let departure = ScheduleToken.Departure(
                place: point.place, step: point.step,
                instead: point.isAmongLanes ? .other(point.name(point.lanes[choice])) : .possibility(choice))
            departures.append(departure)
            journal?.append(departure)
        }
        if point.isAmongLanes { pairs.note(point.lanes[choice], at: point) }
        switch point.kind {
        case .quantity: break
        case .fault(let kind, let place, _): length.faults[kind] = place + 1
        case .task, .thread, .event, .possibility: length.points += 1
        }
        return choice
    }
}
