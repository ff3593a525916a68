/// Looks for a short schedule that fails in the same way.
struct Shrinking {
    private let kind: Fault.Kind
    /// How many runs it has taken.
    private(set) var attempts = 0

    private static let mostAttempts = 2000

    init(_ kind: Fault.Kind) {
        self.kind = kind
    }

    /// - Returns: a schedule that fails in the same way; without any one of its departures it would not.
    mutating func shrink(_ token: ScheduleToken, _ runner: inout some Runner & ~Copyable) -> ScheduleToken {
        var shortest = token
        // Chance first: with another seed other departures may be needed.
        for seed in [0, 1] as [UInt64] where seed < token.seed {
            guard let shorter = attempt(ScheduleToken(seed: seed, departures: token.departures), &runner) else {
                continue
            }
            shortest = shorter
            break
        }
        if let shorter = attempt(ScheduleToken(seed: shortest.seed), &runner) { return shorter }
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

    /// - Returns: the departures that were made, if the run fails in the same way.
    private mutating func attempt(_ token: ScheduleToken, _ runner: inout some Runner & ~Copyable) -> ScheduleToken? {
        guard attempts < Self.mostAttempts else { return nil }
        attempts += 1
        let run = runner.replay(token, isDrawn: false)
        return run.fault?.kind == kind ? run.token : nil
    }
}
