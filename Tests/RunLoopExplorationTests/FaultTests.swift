@_spi(Ports) import RunLoopCore
import RunLoopExploration
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

private func explore(
    _ exploration: Exploration = Exploration(), _ body: (Simulation) throws -> Void
) -> Exploration.Finding? {
    guard case .failed(let finding) = exploration.run(body) else { return nil }
    return finding
}

private struct Failure: Error {}

@Suite("What exploration takes for a fault")
struct FaultTests {
    @Test("a difference is noticed where one task shows it and nothing was to be chosen", arguments: [false, true])
    func differenceOfOneTask(sleeps: Bool) {
        let runs = Counter()
        let result = Exploration(schedules: 200).run { simulation in
            let count = runs.add()
            simulation.loop.task {
                for _ in 0..<count {
                    await Task.yield()
                    if sleeps { try await simulation.loop.clock.sleep(for: .milliseconds(1)) }
                }
            }
            simulation.advance(by: .seconds(10))
        }
        guard case .failed(let finding) = result else {
            Issue.record("it was not noticed")
            return
        }
        #expect(finding.fault.kind == .difference)
    }

    @Test("a task waits and nothing can happen any more; a program whose tasks serve may say that this is all right")
    func deadlock() {
        func serve(_ simulation: Simulation) {
            simulation.loop.task(name: "server") { for await _ in AsyncStream<Int>.makeStream().stream {} }
            simulation.runUntilIdle()
        }
        let finding = explore { serve($0) }
        #expect(finding?.fault.kind == .deadlock)
        #expect(finding?.fault.description.contains("\"server\"") == true, "\(String(describing: finding))")
        #expect(explore(Exploration(limits: .init(reportsDeadlocks: false))) { serve($0) } == nil)
    }

    @Test("the program of a host throws an error, unless the host may fail")
    func hostFailure() {
        func begin(_ simulation: Simulation, mayFail: Bool) {
            let network = SimulatedNetwork(simulation)
            network.addHost("server", mayFail: mayFail) { _ in
                if simulation.choice("the disk", of: ["works", "fails"]) == "fails" { throw Failure() }
            }
            simulation.runUntilIdle()
        }
        let finding = explore { begin($0, mayFail: false) }
        #expect(finding?.fault.kind == .failure)
        #expect(finding?.fault.description == "host \"server\" failed at 0.000000000: Failure()")
        #expect(explore(Exploration(schedules: 20)) { begin($0, mayFail: true) } == nil)
    }

    @Test("a task of a loop does not end when it is cancelled")
    func leak() throws {
        // Resumed at the end, because a continuation that is never resumed is an error of its own.
        let waiting = Locked<[CheckedContinuation<Void, Never>]>([])
        let finding = try #require(
            explore { simulation in
                simulation.loop.task(name: "deaf") {
                    await withCheckedContinuation { continuation in waiting.withLock { $0.append(continuation) } }
                }
                simulation.loop.perform(afterDelay: .seconds(1)) {}
                simulation.advance(by: .milliseconds(1))
            })
        for continuation in waiting.withLock(\.self) { continuation.resume() }
        #expect(finding.fault.kind == .leak)
        #expect(
            finding.fault.description.contains("task deaf, which was started at RunLoopExplorationTests/FaultTests"))
    }

    @Test("something waits for real time")
    func escape() {
        let finding = explore(Exploration(schedules: 20)) { simulation in
            let isOver = Flag()
            simulation.loop.task {
                // If the simulation ended before the task has suspended, the task would not have left.
                try? await Task.sleep(for: .milliseconds(50))
                isOver.set()
            }
            simulation.settle { isOver.isSet }
        }
        #expect(finding?.fault.kind == .escape)
    }

    @Test("a run that does not follow from the seed is found, whatever else happens in it")
    func difference() {
        let runs = Counter()
        let finding = explore { simulation in
            runs.add()
            for _ in 0..<runs.value { simulation.loop.task { await Task.yield() } }
            simulation.runUntilIdle()
        }
        #expect(finding?.fault.kind == .difference && finding?.isReproducible == false)
    }

    @Test("a timer of another thread is late")
    func lateElsewhere() throws {
        let exploration = Exploration(limits: .init(latestFire: .seconds(1)))
        let finding = try #require(
            explore(exploration) { simulation in
                let thread = LoopThread(name: "other") { loop in
                    loop.add(Timer(timeInterval: .seconds(1), repeats: true) { _ in }, forMode: .default)
                }
                thread.remote.perform { _ in
                    if simulation.mayHappen("long work") { simulation.spend(.seconds(5)) }
                }
                simulation.advance(by: .seconds(8))
            })
        #expect(finding.fault.kind == .starvation && "\(finding.token)" == "0:other: long work@0=1")
    }

    @Test("a drag begins between two timers, and one of them is late")
    func starvation() throws {
        func run(_ simulation: Simulation) {
            simulation.mayDrag(for: .seconds(2))
            let modes: [RunLoop.Modes] = [.common, .default]
            for (interval, modes) in zip([1, 3.5], modes) {
                let timer = Timer(timeInterval: .seconds(interval), repeats: true) { _ in }
                timer.name = "every \(interval) s"
                simulation.loop.add(timer, forMode: modes)
            }
            simulation.loop.addCommonMode(.tracking)
            simulation.advance(by: .seconds(12))
        }
        let exploration = Exploration(limits: .init(latestFire: .seconds(1)))
        let finding = try #require(explore(exploration) { run($0) })
        #expect(finding.fault.kind == .starvation && finding.token.departures.count == 1)
        #expect(finding.token.departures.first?.place == "main.every 1.0 s: a drag begins")
        let sentence = finding.fault.description
        #expect(
            sentence.hasPrefix(#"timer "every 3.5 s" ("#) && sentence.contains(" seconds after it was due"),
            "\(sentence)")
        #expect(explore(Exploration(limits: .init(latestFire: .seconds(2)))) { run($0) } == nil)
    }
}
