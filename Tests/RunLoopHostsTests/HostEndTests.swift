import RunLoopCore
import RunLoopExploration
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopUnix
import TestSupport
import Testing

/// Adds a host that accepts connections, and ignores them.
private func addServer(to network: SimulatedNetwork) {
    network.addHost("server") { loop in
        _ = try Listener(address: Endpoint("0.0.0.0", port: 7), on: loop) { _, descriptor, _ in
            try? Connection(adopting: descriptor, on: loop) { $1.count }.start()
        }
    }
}

@Suite("The end of simulated hosts", .timeLimit(.minutes(5)))
struct HostEndTests {
    private static let loops: [@Sendable (RunLoop) async throws -> Void] = [
        { loop in while true { _ = try? await Connection.connect(host: "server", port: 7, on: loop) } },
        { loop in
            while true {
                _ = try? await Connection.connect(host: "server", port: 8, on: loop)
                try? await loop.clock.sleep(for: .seconds(1))
            }
        },
        { loop in
            let connection = try await Connection.connect(host: "server", port: 7, on: loop)
            while true { _ = try? await connection.read() }
        },
        { loop in
            let connection = try await Connection.connect(host: "server", port: 7, on: loop)
            try connection.start()
            try? await loop.clock.sleep(for: .seconds(1_000))
            while true { try? await connection.write("hello") }
        },
        { loop in
            let listener = try Listener(address: Endpoint("0.0.0.0", port: 9), on: loop)
            while true { _ = try? await listener.accept() }
        },
        { loop in
            let socket = try DatagramSocket(address: Endpoint("0.0.0.0", port: 9), on: loop)
            while true { _ = try? await socket.receive() }
        },
        { loop in
            let remote = loop.remote
            while true {
                try? await loop.clock.sleep(for: .seconds(1))
                try? await remote.run { _ in }
            }
        },
    ]

    @Test(
        "a simulation ends though a task of a host tries for ever, and says which task it is",
        arguments: loops.indices)
    func triesForEver(index: Int) throws {
        let failure = #expect(throws: Simulation.HostError.self) {
            try withSimulation { simulation in
                let network = SimulatedNetwork(simulation)
                addServer(to: network)
                network.addHost("client") { loop in loop.task(name: "tries") { try await Self.loops[index](loop) } }
                simulation.advance(by: .seconds(1))
                if simulation.now == .distantFuture { throw CancellationError() }
            }
        }
        #expect(failure?.host == "client")
        #expect(failure.map { "\($0)".contains("task \"tries\"") && "\($0)".contains("continues for ever") } == true)
    }

    @Test("when a simulation returns, the system has ended the threads of its hosts, with their local memory")
    func localMemory() {
        let released = Counter()
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            for name in ["returns", "stays", "killed"] {
                let host = network.addHost(name) { loop in
                    LocalMemory.make(countedBy: released)
                    if name == "returns" { return }
                    loop.add(CustomSource(), forMode: .default)
                }
                if name == "killed" { simulation.loop.perform(at: seconds(1)) { host.crash() } }
            }
            simulation.advance(by: .seconds(10))
        }
        // A killed thread runs nothing more of the program.
        #expect(released.value == 2)
    }

    @Test("an exploration reports a task of a host that tries for ever as a leak")
    func leaks() {
        let result = Exploration(schedules: 4).run { simulation in
            let network = SimulatedNetwork(simulation)
            addServer(to: network)
            network.addHost("client") { loop in loop.task(name: "tries") { try await Self.loops[0](loop) } }
            simulation.advance(by: .milliseconds(20))
        }
        guard case .failed(let finding) = result else {
            Issue.record("nothing was found")
            return
        }
        #expect(finding.fault.kind == .leak && finding.fault.description.contains("task \"tries\""))
    }
}
