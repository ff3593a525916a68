import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@Suite("Simulations: tasks that leave")
struct EscapeTests {
    @Test("a task that waits on real time is reported when it comes back")
    func defaultClock() {
        withSimulation(traced: true) { simulation in
            leave(simulation) { try? await Task.sleep(for: .milliseconds(50)) }
            let escape = simulation.escapes.first ?? ""
            #expect(
                escape.hasPrefix("task \"poller\" (RunLoopSimulationTests/EscapeTests.swift:\(leavingLine))"),
                "\(escape)")
            #expect(
                escape.hasSuffix("came to main at 0.000000000 from a thread outside of the simulation"), "\(escape)")
            #expect(simulation.trace.contains { $0.hasSuffix("escape: \(escape)") }, "\(simulation.trace)")
        }
    }

    // In a process of its own: other tests hold the threads of Swift's default executor for any length of time.
    @Test("a task that waits for one on Swift's default executor is reported when it comes back")
    func defaultExecutor() async {
        await #expect(processExitsWith: .success) {
            var thread: PlainThread?
            await withCheckedContinuation { isOver in
                thread = PlainThread {
                    withSimulation { simulation in
                        leave(simulation) {
                            _ = await Task.detached { try? await Task.sleep(for: .milliseconds(50)) }.value
                        }
                        #expect(!simulation.escapes.isEmpty)
                    }
                    isOver.resume()
                }
            }
            thread?.join()
        }
    }

    @Test("tasks of several loops that talk to one another stay inside, and every run is the same")
    func inside() {
        let traces = (0..<20).map { _ in
            withSimulation(traced: true) { simulation in
                let loop = simulation.loop
                let worker = LoopThread(name: "worker") { $0.add(CustomSource(), forMode: .common) }
                let own = Tally(on: loop.remote.executor())
                let other = Tally(on: worker.remote.executor())
                for number in 1...3 {
                    loop.task {
                        for _ in 0..<20 {
                            try await loop.clock.sleep(for: .milliseconds(number))
                            await own.add()
                            await other.add()
                            let count = try await worker.remote.run { $0.statistics.fires }
                            simulation.note("\(number) \(count)")
                        }
                    }
                }
                simulation.advance(by: .seconds(1))
                #expect(own.assumeIsolated { $0.count } == 60)
                #expect(simulation.escapes.isEmpty, "\(simulation.escapes)")
                worker.stop()
                worker.join()
                return simulation.trace
            }
        }
        #expect(traces.allSatisfy { $0 == traces[0] } && traces[0].count > 60)
    }

    private actor Tally {
        private let home: RunLoop.Executor
        private(set) var count = 0
        nonisolated var unownedExecutor: UnownedSerialExecutor { home.serial.asUnownedSerialExecutor() }

        init(on home: RunLoop.Executor) {
            self.home = home
        }

        func add() { count += 1 }
    }
}

/// The line where ``leave(_:_:)`` starts its task.
private let leavingLine = #line + 5

/// Makes a task of the loop wait until one of its waits was long enough for it to leave.
private func leave(_ simulation: Simulation, _ wait: @escaping @Sendable () async -> Void) {
    let isOver = Flag()
    simulation.loop.task(name: "poller") {
        for _ in 0..<10_000 where simulation.escapes.isEmpty { await wait() }
        isOver.set()
    }
    simulation.settle { isOver.isSet }
}
