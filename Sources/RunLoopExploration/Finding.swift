extension Exploration {
    /// A fault that an exploration has found, and the schedule that leads to it. A value and `Sendable`.
    public struct Finding: Sendable {
        /// What is wrong.
        public let fault: Fault

        /// The shortest schedule that was found to fail in this way.
        public let token: ScheduleToken

        /// The schedule with which it was found.
        public let first: ScheduleToken

        /// How many schedules were tried, with the one that failed.
        public let schedules: Int

        /// What chose the schedule that failed.
        let strategy: String

        /// How many runs it took to make the schedule short.
        public let attempts: Int

        /// Whether the schedule failed in the same way once more.
        public let isReproducible: Bool

        /// What happened in the run that fails.
        public let picture: String

        /// What happened in a run that passes, with one departure less.
        public let nearest: String?
    }
}

extension Exploration.Finding: CustomStringConvertible {
    /// What was found, with the token that replays it.
    public var description: String {
        var lines = [
            "\(fault)",
            "Found with schedule \(schedules) (\(strategy)); \(departures) left of \(first.departures.count) after \(attempts) runs.",
        ]
        if !isReproducible { lines.append("The schedule does not fail each time.") }
        lines += token.departures.map { "  \(Self.sentence($0))" }
        lines += ["To replay it: \(token)", "", "The run that fails:", picture]
        if let nearest { lines += ["", "The same without the last departure, which passes:", nearest] }
        return lines.joined(separator: "\n")
    }

    private var departures: String {
        "\(token.departures.count) departure\(token.departures.count == 1 ? "" : "s")"
    }

    private static func sentence(_ departure: ScheduleToken.Departure) -> String {
        switch departure.instead {
        case .other(let name): "after step \(departure.step) of \(departure.place), \(name) goes on"
        case .possibility(let number): "\(departure.place), time \(departure.step + 1): possibility \(number)"
        }
    }
}
