@_spi(Ports) internal import RunLoopSimulation

/// Runs a program with schedules of an exploration.
///
/// The lengths are of the longest runs so far. The marks count the runs that have met them, and each method adds its
/// new runs.
protocol Runner: ~Copyable {
    /// Tries schedules by their numbers.
    ///
    /// - Returns: the first run that fails, and its number.
    mutating func explore(
        _ numbers: Range<Int>, length: inout RunLength, marks: inout Simulation.Marks
    ) -> (number: Int, run: Run)?

    /// Runs one schedule.
    mutating func replay(_ token: ScheduleToken, _ recording: Recording) -> Run

    /// Runs a variation of a schedule.
    mutating func vary(_ variation: Variation, length: RunLength) -> Run

    /// Runs the schedule of a path.
    ///
    /// - Returns: the run, and the places after the path's last departure where a schedule may depart.
    mutating func follow(_ path: Path, marks: inout Simulation.Marks) -> (run: Run, branches: [Path.Branch])
}

/// Runs schedules on the calling thread.
struct LocalRunner: Runner {
    let portfolio: Portfolio
    let limits: Limits
    let body: (Simulation) throws -> Void
    /// The journal of runs that may be the last ones of the process.
    var journal: Journal?
    private(set) var novelty = Novelty()

    mutating func explore(
        _ numbers: Range<Int>, length: inout RunLength, marks: inout Simulation.Marks
    ) -> (number: Int, run: Run)? {
        for number in numbers {
            let plan = portfolio.plan(number, length: length, novelty: novelty)
            var run = run(plan.seed, plan.strategy, number: number)
            length.grow(to: run.length)
            marks.addRun(run.marks)
            novelty.note(run.token, run.pairs, run.marks)
            journal?.append(run.marks)
            if run.fault == nil, number % Self.twinPeriod == 0 { run.fault = difference(from: run) }
            if run.fault != nil { return (number, run) }
        }
        return nil
    }

    func replay(_ token: ScheduleToken, _ recording: Recording) -> Run {
        run(token.seed, ReplayStrategy(token.departures), recording)
    }

    mutating func follow(_ path: Path, marks: inout Simulation.Marks) -> (run: Run, branches: [Path.Branch]) {
        let strategy = PathStrategy(path)
        let run = run(portfolio.seed, strategy)
        marks.addRun(run.marks)
        journal?.append(run.marks)
        return (run, strategy.branches)
    }

    func vary(_ variation: Variation, length: RunLength) -> Run {
        run(variation.token.seed, variation.strategy(length: length), number: variation.number)
    }

    private func run(
        _ seed: UInt64, _ strategy: any Chooser, _ recording: Recording = .none, number: Int = 0
    ) -> Run {
        journal?.begin(number, seed: seed)
        return Run(seed: seed, strategy, limits, recording, journal, body)
    }

    /// The distance between schedules that are run twice.
    private static let twinPeriod = 64

    private func difference(from run: Run) -> Fault? {
        let twin = replay(run.token, .none)
        return twin.digest != run.digest || twin.fault != nil ? Fault.difference : nil
    }
}
