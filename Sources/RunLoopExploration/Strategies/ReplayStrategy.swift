@_spi(Ports) internal import RunLoopSimulation

/// Departs at the places of a schedule.
struct ReplayStrategy: Chooser {
    private struct Place: Hashable {
        let name: String
        let step: Int
    }

    /// The events that happen instead at each place, the next one last.
    private var departures: [Place: [ScheduleToken.Departure.Instead]] = [:]

    /// The number of departures to come.
    private var left: Int
    var isOver: Bool { left == 0 }

    init(_ departures: [ScheduleToken.Departure]) {
        left = departures.count
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
        left -= 1
        return choice
    }
}
