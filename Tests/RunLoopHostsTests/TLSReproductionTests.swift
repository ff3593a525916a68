import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopTLS
import RunLoopUnix
import TLSTestSupport
import TestSupport
import Testing

@Suite("TLS on simulated hosts")
struct TLSReproductionTests {
    @Test("runs are the same byte for byte, also with an ECDSA key, whose signatures have random lengths elsewhere")
    func keys() throws {
        let authority = Authority()
        let client = try TLSClientContext(roots: authority.roots)
        for bits in [nil, 2048] as [Int32?] {
            let server = try TLSServerContext(identity: authority.identity(bits: bits))
            let traces = try (0..<20).map { _ in try Self.conversation(client, server) }
            #expect(Set(traces).count == 1)
            #expect(traces[0].contains { $0.contains("bytes from server") })
        }
    }

    /// A handshake and an echo.
    private static func conversation(_ client: TLSClientContext, _ server: TLSServerContext) throws -> [String] {
        try withSimulation(traced: true) { simulation in
            let network = SimulatedNetwork(simulation)
            network.addHost("server") { loop in
                _ = try Listener(address: Endpoint("0.0.0.0", port: 7), on: loop) { _, descriptor, _ in
                    let echo = try? Connection(adopting: descriptor, on: loop, tls: server) {
                        $0.write($1)
                        return $1.count
                    }
                    try? echo?.start()
                }
            }
            let received = Counter()
            let loop = simulation.loop
            try Connection.connect(host: "server", port: 7, on: loop, tls: client, serverName: "localhost") {
                received.add($1.count)
                return $1.count
            } completion: { result in
                guard let connection = try? result.get() else { return }
                try? connection.start()
                connection.write("hello")
            }
            simulation.advance(by: .seconds(1))
            #expect(simulation.isReproducible && received.value == 5)
            return simulation.trace
        }
    }
}
