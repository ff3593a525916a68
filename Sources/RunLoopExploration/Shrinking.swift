internal import RunLoopSimulation

/// Looks for a short schedule that fails in the same way.
struct Shrinking {
    private let limits: Exploration.Limits
    private let kind: Fault.Kind
    /// How many runs it has taken.
    private(set) var attempts = 0

    private static let mostAttempts = 2000

    init(_ limits: Exploration.Limits, _ kind: Fault.Kind) {
        self.limits = limits
        self.kind = kind
    }

    /// - Returns: a schedule that fails in the same way; without any one of its departures it would not.
    mutating func shrink(
        _ token: ScheduleToken, _ body: (Simulation) throws -> Void
    ) -> ScheduleToken {
        var shortest = token
        // Chance first: with another seed other departures may be needed.
        for seed in [0, 1] as [UInt64] where seed < token.seed {
            if let shorter = attempt(ScheduleToken(seed: seed, departures: shortest.departures), body) {
                shortest = shorter
                break
            }
        }
        if let shorter = attempt(ScheduleToken(seed: shortest.seed), body) { return shorter }
        var size = max(1, shortest.departures.count / 2)
        while true {
            var start = 0
            var hasShrunk = false
            while start < shortest.departures.count {
                var fewer = shortest
                fewer.departures.removeSubrange(start..<min(start + size, fewer.departures.count))
                if let shorter = attempt(fewer, body), shorter.departures.count < shortest.departures.count {
                    shortest = shorter
                    hasShrunk = true
                } else {
                    start += size
                }
            }
            guard attempts < Self.mostAttempts else { return shortest }
            if size > 1 { size = size / 2 } else if !hasShrunk { return shortest }
        }
    }

    /// - Returns: the departures that were made, if the run fails in the same way.
    private mutating func attempt(
        _ token: ScheduleToken, _ body: (Simulation) throws -> Void
    ) -> ScheduleToken? {
        guard attempts < Self.mostAttempts else { return nil }
        attempts += 1
        let run = Run(seed: token.seed, ReplayStrategy(token.departures), limits, body)
        return run.fault?.kind == kind ? run.token : nil
    }
}
