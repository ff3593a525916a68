import Glibc
import RunLoopKit
import RunLoopTLS
import RunLoopUnix
import TLSTestSupport
import TestSupport
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

    @Test(
        "a record that comes in two parts is read once, though the task that waits is cancelled between them",
        arguments: 0..<3)
    func cancelledAtEveryByte(passes: Int) async throws {
        let contexts = try Contexts()
        let (serverContext, clientContext) = (contexts.server, contexts.client)
        try await withLoop { loop in
            let (near, far) = (makeSockets(), makeSockets())
            let client = try Connection(adopting: near.0, on: loop, tls: clientContext, serverName: "localhost")
            let server = try Connection(adopting: far.0, on: loop, tls: serverContext)
            defer {
                for socket in [near.1, far.1] { close(socket) }
                for connection in [client, server] { connection.close() }
            }
            var isGreeted = false
            loop.task {
                let greeting = try await server.read()
                #expect(greeting == [1])
                isGreeted = true
            }
            try await client.write([1])
            while !isGreeted {
                wire(far.1, arrivals(at: near.1))
                wire(near.1, arrivals(at: far.1))
                await pass(of: loop)
            }
            let message = (0..<200).map { UInt8($0) }
            var length = 1
            var offset = 0
            while offset <= length {
                try await client.write(message)
                let record = arrivals(at: near.1)
                length = record.count
                var received: [UInt8] = []
                func readMessage() -> Task<Void, any Error> {
                    loop.task {
                        while received.count < message.count, let bytes = try await server.read(atMost: 150) {
                            received += bytes
                        }
                    }
                }
                let first = readMessage()
                await Task.yield()
                wire(far.1, record[..<offset])
                for _ in 0..<passes { await pass(of: loop) }
                first.cancel()
                do { try await first.value } catch { #expect(error is CancellationError, "\(offset)") }
                let second = readMessage()
                await Task.yield()
                wire(far.1, record[offset...])
                try await second.value
                #expect(received == message, "\(offset)")
                offset += 1
            }
            #expect(length > message.count)
        }
    }

    @Test("a failed handshake is reported to the task that reads")
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

/// Returns the bytes that have arrived at a socket.
private func arrivals(at socket: Int32) -> ArraySlice<UInt8> {
    var bytes = [UInt8](repeating: 0, count: 1 << 16)
    let count = recv(socket, &bytes, bytes.count, Int32(MSG_DONTWAIT))
    return bytes.prefix(max(0, count))
}

/// Sends bytes as they are.
private func wire(_ socket: Int32, _ bytes: ArraySlice<UInt8>) {
    guard !bytes.isEmpty else { return }
    bytes.withUnsafeBytes { bytes in
        #expect(send(socket, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count)
    }
}
