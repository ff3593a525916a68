import RunLoopKit
import RunLoopSimulation
import RunLoopTLS
import RunLoopUnix
import TLSTestSupport
import TestSupport
import Testing

@Suite("A server that speaks TLS")
struct TLSServerTests {
    @Test("a server serves over TLS, and ends a conversation in order when it shuts down")
    func conversation() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            let contexts = try Contexts()
            let server = Server(on: loop) { connection, _ in
                connection.receiveHandler = {
                    $0.write($1); return $1.count
                }
                connection.write("welcome ")
            }
            server.setTLS(contexts.server)
            let address = try server.listen(on: Endpoint("127.0.0.1", port: 0))
            let client = Side()
            try Connection.connect(to: address, on: loop, tls: contexts.client, serverName: "localhost") {
                client.take($1)
            } completion: { result in
                do {
                    client.connection = try result.get()
                    try client.begin()
                    client.connection.write("hello")
                } catch { Issue.record("\(error)") }
            }
            simulation.settle { client.text == "welcome hello" }
            #expect(server.connectionCount == 1 && client.isSecured)
            var isDown = false
            server.shutDown { isDown = true }
            simulation.settle { isDown && client.reason != nil }
            // The end of TLS, and not a truncated stream.
            #expect(client.reason == .ended)
        }
    }
}
