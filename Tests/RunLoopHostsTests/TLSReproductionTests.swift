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
    @Test("a run with an ECDSA key is not reproducible, because its signatures have random lengths; one with RSA is")
    func keys() throws {
        let authority = Authority()
        let client = try TLSClientContext(roots: authority.roots)
        for (bits, isReproducible) in [(nil, false), (2048, true)] as [(Int32?, Bool)] {
            let server = try TLSServerContext(identity: authority.identity(bits: bits))
            try withSimulation { simulation in
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
                #expect(simulation.isReproducible == isReproducible && received.value == 5)
            }
        }
    }
}
