import RunLoopKit
import RunLoopSimulation
import Testing

@_spi(Ports) @testable import RunLoopUnix

@Suite("Equal endpoints")
struct EndpointEqualityTests {
    @Test("endpoints are equal if their addresses, ports and paths are")
    func equality() throws {
        let make: [() throws -> Endpoint] = [
            { try Endpoint("127.0.0.1", port: 7) }, { try Endpoint("127.0.0.1", port: 8) },
            { try Endpoint("127.0.0.2", port: 7) }, { try Endpoint("::1", port: 7) },
            { try Endpoint("::ffff:127.0.0.1", port: 7) }, { try Endpoint(path: "/tmp/one") },
            { try Endpoint(path: "/tmp/one/") }, { try Endpoint(path: "@/tmp/one") }, { .unnamed }, { Endpoint() },
        ]
        for (place, one) in make.enumerated() {
            for (otherPlace, other) in make.enumerated() {
                let (one, other) = (try one(), try other())
                #expect((one == other) == (place == otherPlace), "\(one) \(other)")
            }
        }
        let twice = try (make + make).map { try $0() }
        #expect(Set(twice).count == make.count)
    }

    @Test("an address from the system equals the address given to it")
    func ofTheSystem() throws {
        try withSimulation { simulation in
            for address in [try Endpoint("127.0.0.1", port: 0), try Endpoint("::1", port: 0)] {
                let socket = try DatagramSocket(address: address, on: simulation.loop)
                #expect(socket.address == address.with(port: socket.address.port!))
                socket.close()
            }
        }
    }
}
