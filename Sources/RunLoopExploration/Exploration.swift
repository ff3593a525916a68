internal import Glibc
@_spi(Ports) internal import RunLoopCore
public import RunLoopSimulation

/// Runs a program in many simulations, each with another legal order of events, until one of them fails.
///
/// In one simulation the order of events is the same each time. In the real world much of it is open: which of the
/// ready tasks runs, which thread goes first, how the bytes of a connection are cut, and any choice that a program
/// itself leaves open with `Simulation.choice(_:of:)`. An exploration varies these, with several strategies by turns.
/// When a run fails, the exploration looks for the shortest schedule that fails in the same way.
///
/// ```swift
/// let result = Exploration().run { simulation in
///     let account = Account(balance: 100, on: simulation.loop)
///     simulation.loop.task { await account.withdraw(80) }
///     simulation.loop.task { await account.withdraw(80) }
///     simulation.runUntilIdle()
///     guard account.balance >= 0 else { throw Overdrawn() }
/// }
/// ```
///
/// The guarantees of the loop hold in every schedule: posts of one thread arrive in their order, and equal dates of one
/// loop are served in the order in which they were armed. The bytes of a connection come in order, and time does not
/// move while there is something to do. Jobs of different tasks have no order here, even on one loop.
///
/// Explorations with the same seed try the same schedules. A `Sendable` value.
public struct Exploration: Sendable {
    /// The largest number of schedules to try.
    public var schedules: Int

    /// The longest time that the exploration may take, in real time; `nil`, the default, for no limit. Checked between
    /// runs.
    public var duration: Duration?

    /// The seed of the schedules.
    public var seed: UInt64

    /// The faults to look for besides an error that the program throws.
    public var limits: Limits

    /// Schedules that have failed before. An exploration tries them first, and then others that are near to them.
    public var former: [ScheduleToken]

    /// The longest time, in real time, for making a failing schedule short; half a minute by default. After that, the
    /// shortest schedule so far counts.
    public var longestShrinking = Duration.seconds(30)

    /// The longest time, in real time, for finding the step from which on the fault was likely; ten seconds by default.
    /// Zero disables the search. See ``Cause``.
    public var longestCauseSearch = Duration.seconds(10)

    /// Called with the progress at most once a second, on the exploring thread.
    public var progress: (@Sendable (Progress) -> Void)?

    /// Makes the command that steps through a schedule of this program, which the report of a finding includes if the
    /// schedule is short. See ``Stepper``.
    public var steppingCommand: (@Sendable (ScheduleToken) -> String)?

    /// The kinds of schedules to try, by turns; all kinds by default.
    public var strategies: Set<Strategies>

    /// Creates an exploration.
    ///
    /// - Precondition: there is at least one schedule, and a strategy.
    public init(
        schedules: Int = 1000, for duration: Duration? = nil, seed: UInt64 = 0, limits: Limits = Limits(),
        former: [ScheduleToken] = [], strategies: Set<Strategies> = Set(Strategies.allCases)
    ) {
        require(!strategies.isEmpty, "an exploration needs a strategy; leave them out for all")
        self.strategies = strategies
        require(schedules > 0, "an exploration tries at least one schedule; this one would try \(schedules)")
        self.schedules = schedules
        self.duration = duration
        self.seed = seed
        self.limits = limits
        self.former = former
    }

    /// The result of an exploration. A `Sendable` value.
    public enum Result: Sendable {
        /// All schedules have passed; their number.
        case passed(schedules: Int)
        case failed(Finding)
    }

    /// Explores a program. The program runs on the calling thread, which blocks meanwhile.
    ///
    /// - Parameter body: the program. Called once for each schedule, it must do the same each time except for the
    ///   choices of its simulation, and fails by throwing an error.
    @available(*, noasync, message: "a simulation runs on one thread; call it from a synchronous function")
    public func run(_ body: (Simulation) throws -> Void) -> Result {
        var marks = Simulation.Marks()
        return run(marks: &marks, body)
    }

    /// Explores a program as ``run(_:)`` does, and counts the schedules that have met each mark.
    ///
    /// - Parameters:
    ///   - marks: the marks, to which this exploration adds its own.
    ///   - body: the program; see ``run(_:)``.
    @available(*, noasync, message: "a simulation runs on one thread; call it from a synchronous function")
    public func run(marks: inout Simulation.Marks, _ body: (Simulation) throws -> Void) -> Result {
        withoutActuallyEscaping(body) { body in
            var runner = LocalRunner(portfolio: portfolio, limits: limits, body: body)
            return run(&runner, &marks)
        }
    }

    /// Explores a program in other processes, so that a run that traps or never ends is found like any other.
    ///
    /// Each of these processes runs this program again, which has to reach the same call. There, the call runs the
    /// schedules and does not return. The standard output of these processes is discarded.
    ///
    /// - Parameters:
    ///   - name: the name of this exploration among the program's explorations.
    ///   - arguments: the command that runs the program, its name first; by default the arguments of this process.
    ///   - body: the program; see ``run(_:)``.
    /// - Returns: the result. In a process that runs the schedules of another exploration, `passed` with no schedules.
    @available(*, noasync, message: "a simulation runs on one thread; call it from a synchronous function")
    public func run(
        inProcessesFor name: String, arguments: [String] = CommandLine.arguments, _ body: (Simulation) throws -> Void
    ) -> Result {
        var marks = Simulation.Marks()
        return run(inProcessesFor: name, arguments: arguments, marks: &marks, body)
    }

    /// Explores a program as ``run(inProcessesFor:arguments:_:)`` does, and counts the schedules that have met each
    /// mark.
    ///
    /// - Parameters:
    ///   - name: the name of this exploration among the program's explorations.
    ///   - arguments: the command that runs the program, its name first; by default the arguments of this process.
    ///   - marks: the marks, to which this exploration adds its own.
    ///   - body: the program; see ``run(_:)``.
    @available(*, noasync, message: "a simulation runs on one thread; call it from a synchronous function")
    public func run(
        inProcessesFor name: String, arguments: [String] = CommandLine.arguments, marks: inout Simulation.Marks,
        _ body: (Simulation) throws -> Void
    ) -> Result {
        guard var runner = makeProcesses(for: name, arguments, body) else { return .passed(schedules: 0) }
        return run(&runner, &marks)
    }

    /// Makes a runner in other processes. Does not return in a process that serves an exploration of this name, and
    /// returns `nil` in one that serves another.
    func makeProcesses(
        for name: String, _ arguments: [String], _ body: (Simulation) throws -> Void
    ) -> ProcessRunner? {
        if let served = Worker.served {
            guard served == name else { return nil }
            withoutActuallyEscaping(body) { body in
                Worker.serve { LocalRunner(portfolio: portfolio, limits: limits, body: body, journal: $0) }
            }
        }
        return ProcessRunner(command: arguments, name: name, longestRun: limits.longestRun)
    }

    /// Runs a program with one schedule.
    ///
    /// - Returns: the fault of the run, if any.
    @available(*, noasync, message: "a simulation runs on one thread; call it from a synchronous function")
    public func replay(_ token: ScheduleToken, _ body: (Simulation) throws -> Void) -> Fault? {
        trace(token, body).fault
    }

    var portfolio: Portfolio { Portfolio(seed: seed, former: former, strategies: strategies) }

    // MARK: Findings

    /// The number of schedules between two looks at the time.
    private static let batch = 32

    private func run(_ runner: inout some Runner & ~Copyable, _ marks: inout Simulation.Marks) -> Result {
        let end = duration.map { ContinuousClock.now + $0 }
        var reports = ProgressReports(report: progress)
        var (number, length) = (0, RunLength())
        while number < schedules {
            let batch = number..<min(number + Self.batch, schedules)
            if let (failed, run) = runner.explore(batch, length: &length, marks: &marks) {
                return .failed(finding(run, failed, length, marks, &runner))
            }
            number = batch.upperBound
            reports.tell(.exploring(schedules: number))
            if let end, ContinuousClock.now >= end { break }
        }
        return .passed(schedules: number)
    }

    /// Makes a failing schedule short.
    ///
    /// - Parameters:
    ///   - number: the number of the schedule; `nil` for the schedule of another finding.
    ///   - strategy: the name of the strategy that has chosen the schedule; by default the strategy of its number.
    func finding(
        _ run: Run, _ number: Int?, by strategy: String? = nil, _ length: RunLength, _ marks: Simulation.Marks,
        _ runner: inout some Runner & ~Copyable
    ) -> Finding {
        let fault = run.fault!
        var shrinking = Shrinking(fault, for: longestShrinking, ProgressReports(report: progress))
        let token = fault.kind == .difference ? run.token : shrinking.shrink(run.token, &runner)
        let failing = runner.replay(token, .trace())
        var nearest: Run?
        if !token.departures.isEmpty {
            let fewer = ScheduleToken(seed: token.seed, departures: token.departures.dropLast())
            nearest = runner.replay(fewer, .trace())
        }
        let isSame = failing.fault?.isLike(fault) ?? false
        return Finding(
            fault: isSame ? failing.fault! : fault, token: token, first: run.token, schedules: (number ?? 0) + 1,
            marks: marks,
            strategy: strategy ?? number.map { portfolio.plan($0, length: RunLength(), novelty: Novelty()).name }
                ?? "of another finding",
            attempts: shrinking.attempts,
            isReproducible: isSame, stepping: steppingCommand?(token),
            cause: isSame ? cause(of: failing, length, &runner) : nil,
            run: SimulationTrace(failing.trace, of: token, failing.fault ?? fault),
            passingRun: nearest.flatMap { $0.fault == nil ? SimulationTrace($0.trace, of: $0.token, nil) : nil })
    }

    /// Looks for the step from which on the fault of a run was likely.
    private func cause(of run: Run, _ length: RunLength, _ runner: inout some Runner & ~Copyable) -> Cause? {
        // Runs that hang would take all the time.
        let isQuick = run.fault!.kind != .hang || limits.longestRun * 64 < longestCauseSearch
        guard longestCauseSearch > .zero, run.fault!.kind != .difference, isQuick else { return nil }
        var length = length
        length.grow(to: run.length)
        let choices = run.trace.choices
        var search = CauseSearch(
            run.fault!, of: run.token, steps: choices.count, length: length, for: longestCauseSearch)
        return search.run(&runner).map { Cause($0, choices) }
    }
}
