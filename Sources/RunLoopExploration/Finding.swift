internal import RunLoopCore
public import RunLoopSimulation

extension Exploration {
    /// A fault that an exploration has found, and the schedule that leads to it. A `Sendable` value.
    public struct Finding: Sendable {
        /// The fault.
        public let fault: Fault

        /// The shortest known schedule that fails in this way.
        public let token: ScheduleToken

        /// The schedule that first led to the fault.
        public let first: ScheduleToken

        /// The number of schedules that were tried, including the one that failed.
        public let schedules: Int

        /// The number of these schedules that have met each mark. A process that has trapped does not report the marks
        /// of its last run.
        public let marks: Simulation.Marks

        /// The name of the strategy that chose the failing schedule.
        let strategy: String

        /// The number of runs needed to make the schedule short.
        public let attempts: Int

        /// A Boolean value that indicates whether a repeated run failed in the same way.
        public let isReproducible: Bool

        /// The command that steps through the schedule, if it is known.
        let stepping: String?

        /// The step from which on the fault was likely; `nil` if the search for it was disabled, see
        /// ``Exploration/longestCauseSearch``, or had no time to learn anything.
        public let cause: Cause?

        /// The failing run, with the schedule ``token``.
        public let run: SimulationTrace

        /// A run that passes, with one departure fewer; `nil` if no such run passes.
        public let passingRun: SimulationTrace?
    }
}

extension Exploration.Finding: CustomStringConvertible {
    /// A report of the fault, with the token that replays it.
    public var description: String {
        let (left, all) = (token.departures.count, first.departures.count)
        let departures = "\(left) departure\(left == 1 ? "" : "s") left of \(all)"
        var lines = [
            "\(fault)",
            "Found with schedule \(schedules) (\(strategy)); \(departures) after \(attempts) runs.",
        ]
        if !isReproducible { lines.append("The schedule does not fail each time.") }
        lines += token.departures.map { "  \(Self.sentence($0))" }
        lines.append("To replay it: \(token)")
        if let stepping, stepping.count <= Self.longestCommand { lines.append("To step through it: \(stepping)") }
        lines += ["", "The run that fails:", picture]
        if let cause { lines += ["", "\(cause)"] + cause.curve }
        if let nearest { lines += ["", "The same without the last departure, which passes:", nearest] }
        return lines.joined(separator: "\n")
    }

    /// The number of columns that the command for stepping may take.
    private static let longestCommand = 120

    private static func sentence(_ departure: ScheduleToken.Departure) -> String {
        switch departure.instead {
        case .other(let name): "after step \(departure.step) of \(departure.place), \(name) continues"
        case .possibility(let number): "\(departure.place), time \(departure.step + 1): possibility \(number)"
        }
    }
}
