import RunLoopCore
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopTesting
import TestSupport
import Testing

@MainActor private func visitMainActor() -> Bool {
    MainActor.assertIsolated()
    return RunLoop.main === RunLoop.current
}

private actor Tally {
    private(set) var count = 0

    func add() { count += 1 }
}

@Suite("Capturing executors on simulated hosts", .serialized)
struct HostCaptureTests {
    /// Runs two hosts whose tasks use the default executor and the main actor, from threads of all kinds.
    private func run(_ simulation: Simulation) {
        simulation.captureExecutors()
        let network = SimulatedNetwork(simulation)
        for name in ["a", "b"] {
            network.addHost(name) { loop in
                let tally = Tally()
                let worker = LoopThread(name: "worker") { $0.add(CustomSource(), forMode: .default) }
                let clock = loop.clock
                loop.task(name: "own") {
                    for _ in 0..<3 {
                        try await clock.sleep(for: .seconds(1))
                        let isAtHome = await visitMainActor()
                        simulation.note("\(name) own \(isAtHome)")
                    }
                }
                worker.remote.perform { worker in
                    worker.task {
                        let isAtHome = await visitMainActor()
                        simulation.note("\(name) worker \(isAtHome)")
                    }
                }
                Task { @MainActor in
                    for _ in 0..<3 {
                        try? await clock.sleep(for: .milliseconds(700))
                        await tally.add()
                        simulation.note("\(name) main actor \(await tally.count) \(visitMainActor())")
                    }
                    worker.stop()
                }
                loop.perform(afterDelay: .seconds(5)) { MainActor.assumeIsolated { _ = visitMainActor() } }
            }
        }
        simulation.runUntilIdle()
    }

    @Test("the main actor runs on the main loop of each process, and nothing escapes; every run is the same")
    func mainActor() {
        let traces = (0..<20).map { _ in
            withSimulation(traced: true) { simulation in
                run(simulation)
                #expect(simulation.escapes.isEmpty, "\(simulation.escapes)")
                return simulation.trace
            }
        }
        #expect(traces.allSatisfy { $0 == traces[0] })
        for line in ["own true", "worker true", "main actor 3 true"] {
            #expect(traces[0].count { $0.hasSuffix("a \(line)") } >= 1, "\(line)")
            #expect(traces[0].count { $0.hasSuffix("b \(line)") } >= 1, "\(line)")
        }
    }

    @Test("a host that starts again has a main actor again, and one that crashed runs no job of it")
    func crash() {
        withSimulation(traced: true) { simulation in
            simulation.captureExecutors()
            let network = SimulatedNetwork(simulation)
            let log = Log<String>()
            let host = network.addHost("server") { loop in
                let clock = loop.clock
                loop.add(CustomSource(), forMode: .default)
                Task { @MainActor in
                    try? await clock.sleep(for: .seconds(2))
                    log("\(simulation.now)")
                }
            }
            simulation.advance(by: .seconds(1))
            host.crash()
            simulation.advance(by: .seconds(9))
            host.start()
            simulation.advance(by: .seconds(9))
            #expect(log.entries == ["12.000000000"] && simulation.escapes.isEmpty)
        }
    }

    @Test("a stall names the task, on a host's main actor too")
    func named() {
        withSimulation { simulation in
            simulation.captureExecutors()
            let network = SimulatedNetwork(simulation)
            let stalls = Log<StallMonitor.Stall>()
            network.addHost("server") { loop in
                let monitor = StallMonitor(loop, threshold: .seconds(1)) { stalls.append($0) }
                loop.task(name: "other") { try await loop.clock.sleep(for: .seconds(20)) }
                loop.task(name: "slow") { @MainActor in simulation.spend(.seconds(2)) }
                loop.perform(afterDelay: .seconds(10)) { _ = monitor }
            }
            simulation.runUntilIdle()
            #expect(stalls.entries.map(\.name) == ["slow", "slow"] && stalls.entries.map(\.kind) == [.task, .task])
            #expect(simulation.escapes.isEmpty)
        }
    }
}
