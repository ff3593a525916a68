@_spi(Ports) internal import RunLoopSimulation

/// Runs the program in another process, and in a new one whenever that one ends.
struct ProcessRunner: ~Copyable, Runner {
    /// The command that runs this program again.
    let command: [String]
    /// The name of the exploration in the program.
    let name: String
    let longestRun: Duration
    private(set) var process: WorkerProcess?

    mutating func explore(
        _ numbers: Range<Int>, length: inout RunLength, marks: inout Simulation.Marks
    ) -> (number: Int, run: Run)? {
        switch ask(.explore(numbers, length: length), &marks) {
        case .passed(let known):
            length = known
            return nil
        case .run(let run, let number, let known, _):
            length.grow(to: known)
            return (number, run)
        case let other: fatalError("the worker of an exploration gave an unexpected answer: \(other.line)")
        }
    }

    mutating func follow(_ path: Path, marks: inout Simulation.Marks) -> (run: Run, branches: [Path.Branch]) {
        askForRun(.follow(path), &marks)
    }

    mutating func replay(_ token: ScheduleToken, _ recording: Recording) -> Run {
        askForRun(.replay(token, recording))
    }

    mutating func vary(_ variation: Variation, length: RunLength) -> Run {
        askForRun(.vary(variation, length: length))
    }

    private mutating func askForRun(_ message: Message) -> Run {
        var marks = Simulation.Marks()
        return askForRun(message, &marks).run
    }

    private mutating func askForRun(
        _ message: Message, _ marks: inout Simulation.Marks
    ) -> (run: Run, branches: [Path.Branch]) {
        guard case .run(let run, _, _, let branches) = ask(message, &marks) else {
            fatalError("the worker of an exploration has not reported a run")
        }
        return (run, branches)
    }

    private mutating func ask(_ message: Message, _ marks: inout Simulation.Marks) -> Message {
        let process = process.take() ?? WorkerProcess(command, serving: name)
        let outcome = process.ask(message, within: longestRun)
        marks.add(process.journal.takeMarks())
        let isTraced = if case .replay(_, .trace) = message { true } else { false }
        let (trace, look) = isTraced ? (process.journal.trace, process.journal.look) : (Trace(), nil)
        switch outcome {
        case .answer(let answer, let isLast):
            if !isLast { self.process = process }
            guard case .run(var run, let number, let length, let branches) = answer else { return answer }
            (run.trace, run.look) = (trace, look)
            return .run(run, number: number, length: length, branches: branches)
        case .ended(let fault):
            let journal = process.journal
            let run = Run(
                token: journal.token ?? ScheduleToken(seed: 0), fault: fault, length: RunLength(), digest: 0,
                trace: trace, look: look)
            return .run(run, number: journal.number)
        }
    }
}
