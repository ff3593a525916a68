import RunLoopExploration
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopUnix

/// Additions to a program by its extension, independent of the program, before it and beside it.
enum Bystander: String, CaseIterable {
    case task, timer, connection

    func join(_ simulation: Simulation) throws {
        let loop = simulation.loop
        switch self {
        case .task:
            loop.task {
                for _ in 1...3 {
                    await work(2)
                    try await loop.clock.sleep(for: .milliseconds(3))
                }
            }
        case .timer:
            var fires = 0
            let timer = Timer(timeInterval: .milliseconds(2), repeats: true) { timer in
                fires += 1
                if fires == 5 { timer.invalidate() }
            }
            loop.add(timer, forMode: .default)
            loop.perform(afterDelay: .milliseconds(1)) {}
        case .connection:
            let network = SimulatedNetwork(simulation)
            let address = try Endpoint("10.77.0.1", port: 7)
            network.addHost("bystander", addresses: ["10.77.0.1"]) { loop in
                let server = Server(on: loop) { connection, _ in
                    connection.receiveHandler = {
                        $0.write($1); return $1.count
                    }
                }
                try server.listen(on: address)
            }
            network.addHost("bystander's client", addresses: ["10.77.0.2"]) { loop in
                loop.task {
                    let connection = try await Connection.connect(to: address, on: loop)
                    try await connection.withStream { stream in
                        for _ in 1...3 {
                            try await stream.write([1, 2, 3])
                            _ = try await stream.read()
                        }
                    }
                }
            }
        }
    }
}
