import Glibc
import RunLoopKit
import RunLoopSimulation
import RunLoopUnix
import TestSupport
import Testing

@Suite("Addresses as text and as bytes")
struct AddressTests {
    @Test("bytes make the same address again", arguments: ["127.0.0.1", "::1", "fe80::1"])
    func bytes(address: String) throws {
        let endpoint = try Endpoint(address, port: 7)
        #expect(endpoint.address == address)
        let copy = try endpoint.withSystemBytes { try Endpoint(systemBytes: $0) }
        #expect(copy == endpoint && copy.port == 7)
    }

    @Test("a path has bytes, and no address in digits", arguments: ["/tmp/socket", "@abstract"])
    func path(path: String) throws {
        let endpoint = try Endpoint(path: path)
        #expect(endpoint.address == nil)
        #expect(try endpoint.withSystemBytes { try Endpoint(systemBytes: $0) }.path == path)
    }

    @Test("the description of a path is one line, whatever is in the path")
    func describedPath() throws {
        let endpoint = try Endpoint(path: "/tmp/a\nb\u{1B}[2J")
        #expect(endpoint.description == #"/tmp/a\nb\u001b[2J"# && endpoint.path == "/tmp/a\nb\u{1B}[2J")
    }

    @Test("bytes that are no address are refused")
    func malformed() {
        func refusal(_ bytes: [UInt8]) -> Int32? {
            do {
                _ = try bytes.withUnsafeBytes { try Endpoint(systemBytes: $0) }
                return nil
            } catch {
                return (error as? SystemError)?.errno
            }
        }
        let family = [UInt8(AF_INET), 0]
        #expect(refusal([]) == EINVAL)
        #expect(refusal([2]) == EINVAL)
        #expect(refusal(family + [0, 7]) == EINVAL)
        #expect(refusal([UInt8](repeating: 2, count: 1_000)) == EINVAL)
        #expect(refusal([UInt8(AF_NETLINK), 0] + [UInt8](repeating: 0, count: 14)) == EAFNOSUPPORT)
        #expect(refusal(family + [UInt8](repeating: 0, count: 14)) == nil)
    }

    @Test("both ends of a connection know their addresses, and a pipe has none")
    func ends() throws {
        let log = Log<String>()
        try withSimulation { simulation in
            let loop = simulation.loop
            var listener: Listener?
            listener = try Listener(address: Endpoint("127.0.0.1", port: 0), on: loop) { _, descriptor, peer in
                let connection = Connection(adopting: descriptor, on: loop)
                log("\(connection.peerAddress == peer), \(connection.localAddress == listener?.address)")
                connection.close()
                log("\(connection.peerAddress as Any)")
                listener?.close()
            }
            let address = listener!.address
            Connection.connect(to: address, on: loop) { result in
                guard let connection = try? result.get() else { return }
                log("\(connection.peerAddress == address), \(connection.localAddress?.address ?? "")")
                connection.close()
            }
            let pipe = DescriptorPair()
            let connection = Connection(adopting: dup(pipe.reader), on: loop)
            log("\(connection.localAddress as Any), \(connection.peerAddress as Any)")
            connection.close()
            simulation.settle { log.entries.count == 4 }
        }
        #expect(Set(log.entries) == ["nil, nil", "true, 127.0.0.1", "true, true", "nil"])
    }
}
