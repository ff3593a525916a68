/// Finds the causes of calls in the flights of several loops.
struct FlightArrows {
    /// An arrow from a handler to a call that it has caused: the index of the cause's flight, and the times of both.
    typealias Arrow = (from: Int, begin: RunLoop.Instant, end: RunLoop.Instant)

    private struct Key: Hashable {
        let process: Int
        let effect: Flight.Effect
    }

    private let flights: [Flight]
    /// The causes within handlers, by their effects, in the order of time.
    private var causes: [Key: [(flight: Int, time: RunLoop.Instant)]] = [:]

    init(_ flights: [Flight]) {
        self.flights = flights
        guard flights.count > 1 else { return }
        for (index, flight) in flights.enumerated() {
            for entry in flight.entries {
                guard case .caused(let handler, let number) = entry.event, entry.depth > 0,
                    let effect = Flight.Effect(handler, number), effect.way == .post || effect.way == .task
                else { continue }
                causes[Key(process: flight.process, effect: effect), default: []].append((index, entry.time))
            }
        }
        causes = causes.mapValues { $0.ordered { $0.time < $1.time } }
    }

    mutating func arrows(to calls: [Flight.Call], of track: Int) -> [Arrow] {
        calls.compactMap { call in
            if let cause = call.cause, cause.call != nil, let time = cause.time {
                return (track, time, call.begin)
            }
            return findElsewhere(call, of: track).map { ($0.flight, $0.time, call.begin) }
        }
    }

    /// Returns the cause of a call in the flight of another loop. A post has a number of its own; a task is woken again
    /// and again, so the latest wake counts, once.
    private mutating func findElsewhere(_ call: Flight.Call, of track: Int) -> (flight: Int, time: RunLoop.Instant)? {
        guard let effect = Flight.Effect(call.handler, call.task ?? call.cause?.number ?? 0) else { return nil }
        let key = Key(process: flights[track].process, effect: effect)
        guard let known = causes[key] else { return nil }
        if effect.way == .post { return known.first { $0.flight != track } }
        guard let last = known.lastIndex(where: { $0.flight != track && $0.time <= call.begin }) else { return nil }
        causes[key] = known[...last].filter { $0.flight == track } + known[(last + 1)...]
        return known[last]
    }
}
