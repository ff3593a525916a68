@_spi(Ports) internal import RunLoopCore
public import RunLoopSimulation

/// Tries all schedules of a small program within a number of departures from the usual one.
///
/// An ``Exploration`` tries some of the schedules; an exhaustive one tries all within its bound, and reports that it
/// has. Most bugs of tasks and threads need one or two departures, and for a program of some hundred places, two
/// departures can be the feasible limit: with three threads and a hundred places, twenty thousand schedules
/// have two.
///
/// ```swift
/// let result = ExhaustiveExploration(departures: 2).run { simulation in
///     let account = Account(balance: 100, on: simulation.loop)
///     simulation.loop.task { await account.withdraw(80) }
///     simulation.loop.task { await account.withdraw(80) }
///     simulation.runUntilIdle()
///     guard account.balance >= 0 else { throw Overdrawn() }
/// }
/// ```
///
/// The page <doc:ProofForSmallPrograms> describes the guarantee of a passing result, and its limits.
///
/// A `Sendable` value.
public struct ExhaustiveExploration: Sendable {
    /// The largest number of departures.
    public var departures: Int

    /// A Boolean value that indicates whether programs of different hosts share nothing but their network. Orders that
    /// differ only in which host's threads go first at one instant are then the same, and one of them is tried.
    public var hostsShareNothing: Bool

    /// The largest number of schedules to try.
    public var schedules: Int

    /// The longest time that the exploration may take, in real time; `nil`, the default, for no limit. Checked between
    /// runs.
    public var duration: Duration?

    /// The seed of the simulations.
    public var seed: UInt64

    /// The faults to look for besides an error that the program throws.
    public var limits: Exploration.Limits

    /// Called with the number of schedules that have passed, at most once a second, on the exploring thread.
    public var progress: (@Sendable (Exploration.Progress) -> Void)?

    /// Makes the command that steps through a schedule; see ``Exploration/steppingCommand``.
    public var steppingCommand: (@Sendable (ScheduleToken) -> String)?

    /// Creates an exploration.
    ///
    /// - Precondition: the number of departures is not negative, and there is at least one schedule.
    public init(
        departures: Int, hostsShareNothing: Bool = false, schedules: Int = 1_000_000, for duration: Duration? = nil,
        seed: UInt64 = 0, limits: Exploration.Limits = Exploration.Limits()
    ) {
        require(departures >= 0, "a schedule cannot have \(departures) departures; the usual one has 0")
        require(schedules > 0, "an exploration tries at least one schedule; this one would try \(schedules)")
        self.departures = departures
        self.hostsShareNothing = hostsShareNothing
        self.schedules = schedules
        self.duration = duration
        self.seed = seed
        self.limits = limits
    }

    /// Returns an exploration of all schedules with at most `departures` departures.
    public static func exhaustive(departures: Int) -> ExhaustiveExploration {
        ExhaustiveExploration(departures: departures)
    }

    /// The result of an exhaustive exploration. A `Sendable` value.
    public enum Result: Sendable {
        /// All schedules have passed.
        case proven(Coverage)
        /// The covered schedules have passed, and not all were tried.
        case incomplete(Coverage)
        case failed(Exploration.Finding)
    }

    /// The schedules that have passed. A `Sendable` value.
    public struct Coverage: Sendable, Hashable, CustomStringConvertible {
        /// The number of schedules with no departure, with one, and so on.
        public let schedules: [Int]
        /// A Boolean value that indicates whether these are all schedules within the bound.
        public let isComplete: Bool

        /// For example `all 1 + 48 + 1,128 schedules with at most 2 departures have passed`.
        public var description: String {
            let numbers = schedules.map(String.init).joined(separator: " + ")
            let bound = "with at most \(schedules.count - 1) departure\(schedules.count == 2 ? "" : "s")"
            return isComplete
                ? "all \(numbers) schedules \(bound) have passed"
                : "\(numbers) schedules \(bound) have passed, and others were not tried"
        }
    }

    /// Explores a program. The program runs on the calling thread, which blocks meanwhile.
    ///
    /// - Parameter body: the program. Called once for each schedule, it must do the same each time except for the
    ///   choices of its simulation, and fails by throwing an error.
    @available(*, noasync, message: "a simulation runs on one thread; call it from a synchronous function")
    public func run(_ body: (Simulation) throws -> Void) -> Result {
        withoutActuallyEscaping(body) { body in
            var runner = LocalRunner(portfolio: exploration.portfolio, limits: limits, body: body)
            return run(&runner)
        }
    }

    /// Explores a program in other processes, so that a schedule that traps or never ends is found like any other.
    ///
    /// - Parameters:
    ///   - name: the name of this exploration among the program's explorations.
    ///   - arguments: the command that runs the program, its name first; by default the arguments of this process.
    ///   - body: the program; see ``run(_:)``.
    /// - Returns: the result; see also ``Exploration/run(inProcessesFor:arguments:_:)``. In a process that runs the
    ///   schedules of another exploration, `incomplete` with no schedules.
    @available(*, noasync, message: "a simulation runs on one thread; call it from a synchronous function")
    public func run(
        inProcessesFor name: String, arguments: [String] = CommandLine.arguments, _ body: (Simulation) throws -> Void
    ) -> Result {
        guard var runner = exploration.makeProcesses(for: name, arguments, body) else {
            return .incomplete(Coverage(schedules: [0], isComplete: false))
        }
        return run(&runner)
    }

    private var exploration: Exploration {
        var exploration = Exploration(schedules: schedules, seed: seed, limits: limits)
        (exploration.progress, exploration.steppingCommand) = (progress, steppingCommand)
        return exploration
    }

    private func run(_ runner: inout some Runner & ~Copyable) -> Result {
        var enumeration = Enumeration(departures: departures, hostsShareNothing: hostsShareNothing)
        var (count, reports) = (0, ProgressReports(report: progress))
        let end = duration.map { ContinuousClock.now + $0 }
        while enumeration.hasNext(&runner), count < schedules, end.map({ ContinuousClock.now < $0 }) ?? true {
            let run = enumeration.runNext(&runner)
            if run.fault != nil {
                return .failed(
                    exploration.finding(run, count, by: "all by turns", run.length, enumeration.marks, &runner))
            }
            count += 1
            reports.tell(.exploring(schedules: count))
        }
        let coverage = Coverage(schedules: enumeration.counts, isComplete: enumeration.isComplete)
        return coverage.isComplete ? .proven(coverage) : .incomplete(coverage)
    }
}
