/// Looks for a short schedule that fails in the same way.
struct Shrinking {
    private let kind: Fault.Kind
    /// The number of runs so far.
    private(set) var attempts = 0

    private static let mostAttempts = 2000

    init(_ kind: Fault.Kind) {
        self.kind = kind
    }

    /// - Returns: a schedule that fails in the same way, but not without any one of its departures, nor with one
    ///   departure in the place of two.
    mutating func shrink(_ token: ScheduleToken, _ runner: inout some Runner & ~Copyable) -> ScheduleToken {
        var shortest = takeAway(from: token, &runner)
        while let merged = merge(shortest, &runner) { shortest = takeAway(from: merged, &runner) }
        return shortest
    }

    /// Puts one departure in the place of two.
    private mutating func merge(_ token: ScheduleToken, _ runner: inout some Runner & ~Copyable) -> ScheduleToken? {
        for kept in token.departures.indices {
            for dropped in token.departures.indices where dropped != kept {
                let (one, other) = (token.departures[kept], token.departures[dropped])
                var candidates = [
                    ScheduleToken.Departure(place: one.place, step: one.step, instead: other.instead),
                    ScheduleToken.Departure(place: other.place, step: other.step, instead: one.instead),
                ]
                for distance in [-1, 1, -2, 2, -3, 3] where one.step + distance >= 0 {
                    candidates.append(.init(place: one.place, step: one.step + distance, instead: one.instead))
                }
                for candidate in candidates {
                    var fewer = token
                    fewer.departures[kept] = candidate
                    fewer.departures.remove(at: dropped)
                    guard let merged = attempt(fewer, &runner), merged.departures.count < token.departures.count else {
                        continue
                    }
                    return merged
                }
            }
        }
        return nil
    }

    private mutating func takeAway(
        from token: ScheduleToken, _ runner: inout some Runner & ~Copyable
    ) -> ScheduleToken {
        var shortest = token
        // The seed comes first: another one may need other departures.
        for seed in [0, 1] as [UInt64] where seed < token.seed {
            guard let shorter = attempt(ScheduleToken(seed: seed, departures: token.departures), &runner) else {
                continue
            }
            shortest = shorter
            break
        }
        if let shorter = attempt(ScheduleToken(seed: shortest.seed), &runner) { return shorter }
        // Draws with the same name depart at many places.
        var seen: Set<String> = []
        for departure in shortest.departures where seen.insert(departure.place).inserted {
            guard case .possibility = departure.instead else { continue }
            var fewer = shortest
            fewer.departures.removeAll { $0.place == departure.place }
            guard fewer.departures.count < shortest.departures.count - 1 else { continue }
            shortest = attempt(fewer, &runner) ?? shortest
        }
        var size = max(1, shortest.departures.count / 2)
        while attempts < Self.mostAttempts {
            var (start, hasShrunk) = (0, false)
            while start < shortest.departures.count {
                var fewer = shortest
                fewer.departures.removeSubrange(start..<min(start + size, fewer.departures.count))
                if let shorter = attempt(fewer, &runner), shorter.departures.count < shortest.departures.count {
                    (shortest, hasShrunk) = (shorter, true)
                } else {
                    start += size
                }
            }
            if size == 1 && !hasShrunk { break }
            size = max(1, size / 2)
        }
        return shortest
    }

    /// - Returns: the departures of the run, if it fails in the same way.
    private mutating func attempt(_ token: ScheduleToken, _ runner: inout some Runner & ~Copyable) -> ScheduleToken? {
        guard attempts < Self.mostAttempts else { return nil }
        attempts += 1
        let run = runner.replay(token, isDrawn: false)
        return run.fault?.kind == kind ? run.token : nil
    }
}
