import Glibc
import RunLoopKit
import RunLoopSimulation
import RunLoopTLS
import RunLoopUnix
import TLSTestSupport
import TestSupport
import Testing

@Suite("TLS connections")
struct TLSConnectionTests {
    @Test("bytes written on one side come out on the other, also bytes written before the handshake")
    func conversation() throws {
        try withSimulation { simulation in
            let (server, client) = try Contexts().connect(on: simulation.loop)
            server.receive = { side, bytes in
                side.connection.write(bytes)
                return bytes.count
            }
            client.connection.write("hello")
            #expect(client.connection.pendingOutput == 5)
            simulation.advance(by: .zero)
            #expect(client.text == "hello")
            #expect(server.isSecured && client.isSecured)
            client.connection.write(" again")
            simulation.advance(by: .zero)
            #expect(client.text == "hello again")
            client.connection.finish()
            simulation.advance(by: .zero)
            #expect(server.reason == .ended)
            #expect(client.reason == .closed)
        }
    }

    @Test("both sides know the negotiated parameters")
    func agreement() throws {
        try withSimulation { simulation in
            var options = TLSOptions()
            options.applicationProtocols = ["h2", "http/1.1"]
            options.minimumVersion = .tls13
            let contexts = try Contexts(options)
            let (server, client) = try contexts.connect(on: simulation.loop)
            simulation.advance(by: .zero)
            for session in [server.connection.tls, client.connection.tls] {
                let session = try #require(session)
                #expect(session.version == "TLSv1.3")
                #expect(session.cipher?.hasPrefix("TLS_") == true)
                #expect(session.applicationProtocol == "h2")
                #expect(!session.isResumed)
            }
            #expect(server.connection.tls?.serverName == "localhost")
            #expect(server.connection.tls?.peerSubject == nil)
            #expect(client.connection.tls?.peerSubject == "CN=server")
            server.connection.close()
            simulation.advance(by: .zero)
            #expect(client.reason == .ended)
        }
    }

    @Test("data that arrives with the end closes and releases a connection that only its loop keeps")
    func endWithData() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            let contexts = try Contexts()
            for round in 0..<50 {
                let (one, other) = makeSockets()
                let client = try Side.client(other, on: loop, contexts.client)
                var received = ""
                var reasons: [Connection.CloseReason] = []
                weak var kept: Connection?
                do {
                    let server = try Connection(adopting: one, on: loop, tls: contexts.server) { _, bytes in
                        bytes.withUnsafeBufferPointer { received += String(decoding: $0, as: UTF8.self) }
                        return bytes.count
                    }
                    server.closeHandler = { reasons.append($1) }
                    try server.start()
                    kept = server
                }
                simulation.advance(by: .zero)
                client.connection.write("the last words")
                client.connection.finish()
                simulation.advance(by: .zero)
                #expect(received == "the last words" && reasons == [.ended], "round \(round)")
                #expect(kept == nil && client.reason == .closed, "round \(round)")
            }
        }
    }
}
