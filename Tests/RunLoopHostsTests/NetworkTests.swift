import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopUnix
import TestSupport
import Testing

/// An echo server that listens on port 7.
func echo(on loop: RunLoop) throws {
    _ = try Listener(address: Endpoint("0.0.0.0", port: 7), on: loop) { _, descriptor, _ in
        let connection = Connection(adopting: descriptor, on: loop) { connection, bytes in
            connection.write(bytes)
            return bytes.count
        }
        try? connection.start()
    }
}

@Suite("A simulated network")
struct NetworkTests {
    @Test("a client finds a server by its name, and every byte comes back")
    func echoes() {
        withSimulation(traced: true) { simulation in
            let network = SimulatedNetwork(simulation)
            network.addHost("server", program: echo)
            let sent = randomBytes(300_000, seed: 1)
            var received: [UInt8] = []
            Connection.connect(host: "server", port: 7, on: simulation.loop) { _, bytes in
                bytes.withUnsafeBufferPointer { received += $0 }
                return bytes.count
            } completion: { result in
                let connection = try! result.get()
                try! connection.start()
                connection.write(sent)
                connection.finishWriting()
            }
            simulation.advance(by: .seconds(60))
            #expect(areSame(received, sent))
            for line in simulation.trace { print(line) }
        }
    }
}
