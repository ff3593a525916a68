/// Looks for a short schedule that fails in the same way.
struct Shrinking {
    private let fault: Fault
    private let begin = ContinuousClock.now
    private let duration: Duration
    private var reports: ProgressReports
    /// The number of departures of the shortest schedule so far.
    private var fewest = Int.max
    /// The number of runs so far.
    private(set) var attempts = 0

    private static let mostAttempts = 5000

    /// - Parameter duration: the longest time that the search may take, in real time. After that, the shortest schedule
    ///   so far counts.
    init(_ fault: Fault, for duration: Duration, _ reports: ProgressReports) {
        (self.fault, self.duration, self.reports) = (fault, duration, reports)
    }

    private var isOver: Bool { attempts >= Self.mostAttempts || ContinuousClock.now - begin >= duration }

    /// - Returns: a schedule that fails in the same way; if there was time, a schedule that fails neither without any
    ///   one of its departures, nor with one departure in place of two.
    mutating func shrink(_ token: ScheduleToken, _ runner: inout some Runner & ~Copyable) -> ScheduleToken {
        fewest = token.departures.count
        var shortest = takeAway(from: token, &runner)
        while let merged = merge(shortest, &runner) { shortest = takeAway(from: merged, &runner) }
        return shortest
    }

    /// Replaces two departures by one.
    private mutating func merge(_ token: ScheduleToken, _ runner: inout some Runner & ~Copyable) -> ScheduleToken? {
        for kept in token.departures.indices {
            for dropped in token.departures.indices where dropped != kept {
                guard !isOver else { return nil }
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
                    if let merged = attempt(fewer, &runner), merged.departures.count < token.departures.count {
                        return merged
                    }
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
            if let shorter = attempt(ScheduleToken(seed: seed, departures: token.departures), &runner) {
                shortest = shorter
                break
            }
        }
        if let shorter = attempt(ScheduleToken(seed: shortest.seed), &runner) { return shorter }
        // Often only departures near the fault matter.
        var count = 1
        while count < shortest.departures.count / 2 {
            let last = ScheduleToken(seed: shortest.seed, departures: shortest.departures.suffix(count))
            if let shorter = attempt(last, &runner), shorter.departures.count < shortest.departures.count {
                shortest = shorter
                break
            }
            count *= 2
        }
        // Big steps first: a token may have thousands of departures, and almost as many places.
        var size = shortest.departures.count / 2
        while size >= Self.smallStep, !isOver {
            takeAwayRuns(of: size, from: &shortest, &runner)
            size /= 2
        }
        takeAwayPlaces(from: &shortest, &runner)
        size = max(1, size)
        while !isOver {
            let hasShrunk = takeAwayRuns(of: size, from: &shortest, &runner)
            if size == 1 && !hasShrunk { break }
            size = max(1, size / 2)
        }
        return shortest
    }

    /// The smallest number of departures that are removed at once before whole places are.
    private static let smallStep = 32

    /// Removes runs of `size` consecutive departures.
    ///
    /// - Returns: `true` if any could be removed.
    @discardableResult
    private mutating func takeAwayRuns(
        of size: Int, from shortest: inout ScheduleToken, _ runner: inout some Runner & ~Copyable
    ) -> Bool {
        var (start, hasShrunk) = (0, false)
        while start < shortest.departures.count, !isOver {
            var fewer = shortest
            fewer.departures.removeSubrange(start..<min(start + size, fewer.departures.count))
            if let shorter = attempt(fewer, &runner), shorter.departures.count < shortest.departures.count {
                (shortest, hasShrunk) = (shorter, true)
            } else {
                start += size
            }
        }
        return hasShrunk
    }

    /// Removes all departures of one place at a time: draws with the same name depart at many steps.
    private mutating func takeAwayPlaces(from shortest: inout ScheduleToken, _ runner: inout some Runner & ~Copyable) {
        var seen: Set<String> = []
        for departure in shortest.departures where seen.insert(departure.place).inserted {
            guard !isOver else { return }
            guard case .possibility = departure.instead else { continue }
            var fewer = shortest
            fewer.departures.removeAll { $0.place == departure.place }
            guard fewer.departures.count < shortest.departures.count - 1 else { continue }
            shortest = attempt(fewer, &runner) ?? shortest
        }
    }

    /// - Returns: the departures of the run, if it fails in the same way.
    private mutating func attempt(_ token: ScheduleToken, _ runner: inout some Runner & ~Copyable) -> ScheduleToken? {
        guard !isOver else { return nil }
        attempts += 1
        let run = runner.replay(token, .none)
        defer { reports.tell(.shrinking(departures: fewest, runs: attempts)) }
        guard let found = run.fault, found.isLike(fault) else { return nil }
        fewest = min(fewest, run.token.departures.count)
        return run.token
    }
}
