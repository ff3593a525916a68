internal import RunLoopSimulation

/// Makes the choices of one run as another chooser does, and notes the departures from the usual choices.
final class Recorder: Chooser {
    private var chooser: any Chooser
    private let journal: Journal?
    /// Whether the choices get words.
    private let isDrawn: Bool
    /// The words for each choice.
    private(set) var choices: [String] = []
    private(set) var departures: [ScheduleToken.Departure] = []
    private(set) var length = RunLength()
    private(set) var pairs = TurnPairs()
    /// A hash of all choices.
    private(set) var digest: UInt64 = 0xcbf2_9ce4_8422_2325

    init(_ chooser: any Chooser, _ journal: Journal?, isDrawn: Bool) {
        (self.chooser, self.journal, self.isDrawn) = (chooser, journal, isDrawn)
    }

    func choose(at point: ChoicePoint) -> Int {
        let choice = chooser.choose(at: point)
        if isDrawn {
            choices.append(point.words(for: choice))
            journal?.append(choice: choices.last!)
        }
        digest = (digest ^ UInt64(truncatingIfNeeded: choice)) &* 0x0100_0000_01b3
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

extension ChoicePoint {
    /// The words for a choice, for example `worker goes on instead of reader`.
    func words(for choice: Int) -> String {
        func name(_ choice: Int) -> String { String(self.name(lanes[choice]).drop { $0 == "*" }) }
        switch kind {
        case .task, .thread, .event:
            return "\(name(choice)) goes on" + (choice == usual ? "" : " instead of \(name(usual))")
        case .possibility, .fault:
            guard choice != 0 else { return "not \(place)" }
            return place + (lanes.count == 2 ? "" : ": possibility \(choice)")
        case .quantity: return "\(place): \(choice)"
        }
    }
}
