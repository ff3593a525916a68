@_spi(Ports) internal import RunLoopSimulation

/// Departs near the places of a known schedule: at one or two places more, at one place less, or a step earlier or
/// later; or departs like it up to a place, and then anywhere.
struct NearbyStrategy: Chooser {
    private var replay: ReplayStrategy
    private var others: any Chooser
    /// `true` if the other departures come after the schedule's own.
    private let isCut: Bool

    init(_ token: ScheduleToken, length: Int, numbers: SeededNumbers) {
        var (numbers, departures) = (numbers, token.departures)
        let change = [Change.more, .more, .one, .cut].randomElement(using: &numbers)!
        var count = Int.random(in: 0...1, using: &numbers)
        switch change {
        case .more: count += 1
        case .cut: departures.removeLast(Int.random(in: 0...departures.count, using: &numbers))
        case .one:
            guard let index = departures.indices.randomElement(using: &numbers) else { break }
            let former = departures.remove(at: index)
            let step = former.step + [-1, 1].randomElement(using: &numbers)!
            if step >= 0 && Bool.random(using: &numbers) {
                departures.insert(.init(place: former.place, step: step, instead: former.instead), at: index)
            }
        }
        replay = ReplayStrategy(departures)
        isCut = change == .cut
        others =
            isCut
            ? RandomStrategy(numbers: numbers)
            : FewDeparturesStrategy(count, length: length, takesTurns: false, numbers: numbers)
    }

    /// The change of a known schedule.
    private enum Change {
        /// Departures at one or two more places.
        case more
        /// One departure fewer, or at another step.
        case one
        /// An end that is left to chance.
        case cut
    }

    mutating func choose(at point: ChoicePoint) -> Int {
        let isReplaying = !replay.isOver
        let choice = replay.choose(at: point)
        switch point.kind {
        case .quantity, .fault: return choice
        case .task, .thread, .event, .possibility: break
        }
        return choice == point.usual && !(isCut && isReplaying) ? others.choose(at: point) : choice
    }
}
