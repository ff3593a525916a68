@_spi(Ports) internal import RunLoopCore
@_spi(Ports) internal import RunLoopSimulation

/// One run of a program, with one schedule.
struct Run {
    /// The token that repeats the run.
    let token: ScheduleToken
    var fault: Fault?
    let length: RunLength
    /// A hash, equal in equal runs.
    let digest: UInt64
    /// The trace of the run, if requested; for a run in another process, its journal has it.
    var trace = Trace()
    /// The lines of a look at the threads, if requested; `nil` if the process ended before.
    var look: [String]?
    /// The marks that the run has met; none for a run in another process, whose journal has them.
    var marks = Simulation.Marks()
    /// The pairs of consecutive turns of different lanes; none for a run in another process.
    var pairs: [UInt16] = []
}

extension Run {
    init(
        seed: UInt64, _ strategy: any Chooser, _ limits: Limits, _ recording: Recording, _ journal: Journal?,
        _ body: (Simulation) throws -> Void
    ) {
        let (trace, looked) = (Locked(Trace()), Locked<[String]?>(nil))
        var look: Look?
        var record: (@Sendable (Trace.Entry) -> Void)?
        if case .trace(let position) = recording {
            look = position.map { position in
                Look(at: position) { lines in
                    journal?.append(look: lines)
                    looked.withLock { $0 = lines }
                }
            }
            record = { [look] entry in
                if let journal { journal.append(entry) } else { trace.withLock { $0.entries.append(entry) } }
                look?.advance()
            }
        }
        let recorder = Recorder(strategy, journal)
        let schedule = Schedule(recorder)
        if let record {
            recorder.record = { [unowned schedule] choice, point in
                record(.choice(Trace.Choice(of: choice, at: point, on: schedule.time())))
            }
        }
        let listener = record.map { record in { @Sendable (event: TracedEvent) in record(.event(event)) } }
        var (fault, end, marks) = withSimulation(
            seed: seed, traced: record != nil, schedule: schedule, listener: listener, look: look
        ) { simulation in
            var fault: Fault?
            do { try body(simulation) } catch { fault = Fault(.expectation, "\(error)") }
            fault = fault ?? Fault(of: simulation, limits)
            return (fault, simulation.now, simulation.marks)
        }
        if fault == nil, limits.reportsLeaks {
            if let sentence = schedule.endlessTask {
                fault = Fault(.leak, sentence)
            } else if let task = schedule.leakedTask {
                fault = Fault(.leak, "\(task), has not ended, though it was cancelled when its loop ended")
            }
        }
        var length = recorder.length
        length.turns = schedule.turns(ofFirst: RunLength.mostNames)
        self.init(
            token: ScheduleToken(seed: seed, departures: recorder.departures), fault: fault, length: length,
            digest: (recorder.digest ^ schedule.digest ^ UInt64(bitPattern: end.nanoseconds)) &* 0x0100_0000_01b3,
            trace: trace.withLock(\.self), look: looked.withLock(\.self), marks: marks, pairs: recorder.pairs.hashes)
    }
}

extension Fault {
    /// Finds the fault of a simulation at the end of a program, if any.
    fileprivate init?(of simulation: Simulation, _ limits: Limits) {
        if let failure = simulation.hostFailures.first {
            self.init(.failure, "\(failure)")
        } else if let escape = simulation.escapes.first {
            self.init(.escape, escape)
        } else if let most = limits.latestFire, case let late = simulation.latestFire, late.lateness > most {
            self.init(.starvation, "\(late.item ?? "a timer") fired \(late.lateness) after it was due")
        } else if limits.reportsDeadlocks, case .stuck(let waits) = simulation.standing,
            case let tasks = waits.filter(\.isOfTask), !tasks.isEmpty
        {
            let words = tasks.prefix(8).map { "\($0)" }.joined(separator: ", ")
            self.init(.deadlock, "nothing can happen any more, and \(words)\(tasks.count > 8 ? ", …" : "")")
        } else {
            return nil
        }
    }
}
