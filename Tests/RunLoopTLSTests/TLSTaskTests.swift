import RunLoopKit
import RunLoopTLS
import RunLoopUnix
import Testing

@Suite("TLS awaited")
struct TLSTaskTests {
    @Test("tasks accept, connect and talk; the end is orderly on both sides")
    func conversation() async throws {
        let contexts = try Contexts()
        let (serverContext, clientContext) = (contexts.server, contexts.client)
        let sent = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        let received = try await withLoop { loop in
            let listener = try Listener(address: Endpoint("127.0.0.1", port: 0), on: loop)
            let server = loop.task {
                let connection = try await listener.accept(tls: serverContext)
                try await connection?.withStream { stream in
                    while let bytes = try await stream.read() { try await stream.write(bytes) }
                }
            }
            let client = try await Connection.connect(
                host: "127.0.0.1", port: listener.address.port ?? 0, on: loop, tls: clientContext,
                serverName: "localhost")
            var received: [UInt8] = []
            try await client.withStream { stream in
                loop.task { try await stream.write(sent) }
                while received.count < sent.count, let bytes = try await stream.read(atMost: 50_000) {
                    received += bytes
                }
            }
            try await server.value
            listener.close()
            return received
        }
        let isSame = received == sent
        #expect(isSame)
    }

    @Test("a handshake that fails is told to the task that reads")
    func refused() async throws {
        let contexts = try Contexts()
        let (serverContext, clientContext) = (contexts.server, contexts.client)
        try await withLoop { loop in
            let listener = try Listener(address: Endpoint("127.0.0.1", port: 0), on: loop)
            loop.task {
                let connection = try await listener.accept(tls: serverContext)
                _ = try await connection?.read()
            }
            let port = listener.address.port ?? 0
            let client = try await Connection.connect(
                host: "127.0.0.1", port: port, on: loop, tls: clientContext, serverName: "elsewhere.example")
            let error = await #expect(throws: Connection.ClosedError.self) { _ = try await client.read() }
            guard case .failed(let reason) = error?.reason else {
                Issue.record("\(String(describing: error))")
                return
            }
            #expect(reason is TLSError)
            listener.close()
        }
    }
}
