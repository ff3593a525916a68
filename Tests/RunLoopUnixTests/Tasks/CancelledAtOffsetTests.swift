import Glibc
import RunLoopKit
import RunLoopUnix
import TestSupport
import Testing

/// Waits of tasks that are cancelled at every byte from peers on plain sockets.
@Suite("Waits cancelled at every byte", .timeLimit(.minutes(5)))
struct CancelledAtOffsetTests {
    /// Lines of several lengths, 195 bytes.
    private static let message = Array(
        [0, 1, 2, 5, 17, 40, 131].map { String(repeating: "abcdé", count: $0 / 6) + String($0 % 6) + "\r\n" }
            .joined().utf8)

    /// A method by which a task receives input.
    enum Form: CaseIterable {
        case read, receive, lines
    }

    /// Receives input in one wait; empty at the end of the stream.
    private static nonisolated(nonsending) func take(_ form: Form, from connection: Connection) async throws -> [UInt8]
    {
        switch form {
        case .read: return try await connection.read(atMost: 30) ?? []
        case .receive:
            var taken: [UInt8] = []
            // Whole groups of five.
            _ = try await connection.receive { bytes in
                let count = bytes.count / 5 * 5
                bytes.extracting(0..<count).withUnsafeBufferPointer { taken += $0 }
                return count
            }
            return taken
        case .lines:
            let lines = connection.lines().makeAsyncIterator()
            return try await lines.next().map { Array(($0 + "\r\n").utf8) } ?? []
        }
    }

    @Test(
        "a message that comes in two parts is read once, though the task that waits is cancelled between them",
        arguments: Form.allCases, 0..<3)
    func reads(form: Form, passes: Int) async {
        await onLoop { loop in
            let sockets = makeSockets()
            let (connection, peer) = (Connection(adopting: sockets.0, on: loop), Peer(sockets.1))
            let message = Self.message
            for offset in 0...message.count {
                var received: [UInt8] = []
                func readMessage() -> Task<Void, any Error> {
                    loop.task {
                        while received.count < message.count {
                            let bytes = try await Self.take(form, from: connection)
                            received += bytes
                        }
                    }
                }
                let first = readMessage()
                // The task waits.
                await Task.yield()
                peer.send(message[..<offset])
                for _ in 0..<passes { await pass(of: loop) }
                first.cancel()
                do { try await first.value } catch { #expect(error is CancellationError, "\(offset)") }
                let second = readMessage()
                await Task.yield()
                peer.send(message[offset...])
                try await second.value
                #expect(received == message, "\(offset)")
                #expect(connection.unusedInput == 0, "\(offset)")
            }
            connection.close()
        }
    }

    @Test(
        "the bytes that a cancelled write says were taken are those that arrive, wherever the peer has come",
        arguments: [1, 100, 3000], 0..<3)
    func writes(mark: Int, passes: Int) async {
        await onLoop { loop in
            let bytes = (0..<40_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
            var limits = Connection.Limits()
            (limits.highWatermark, limits.lowWatermark) = (mark, mark / 3)
            for offset in stride(from: 0, through: 3000, by: 31) {
                let sockets = makeSockets()
                for socket in [sockets.0, sockets.1] { setBufferSizes(of: socket, to: 1) }
                let connection = Connection(adopting: sockets.0, on: loop, limits: limits)
                let peer = Peer(sockets.1)
                let writer = loop.task { try await connection.write(bytes) }
                var received: [UInt8] = []
                while received.count < offset {
                    received += peer.receiveBytes(offset - received.count)!
                    await pass(of: loop)
                }
                for _ in 0..<passes { await pass(of: loop) }
                writer.cancel()
                let error = await #expect(throws: Connection.WriteError.self) { try await writer.value }
                let written = error?.written ?? 0
                connection.finish()
                while let more = peer.receiveBytes(4096) {
                    received += more
                    await pass(of: loop)
                }
                let isSame = received == Array(bytes[..<written])
                #expect(isSame, "\(written) were taken and \(received.count) have come; the peer was at \(offset)")
            }
        }
    }
}

/// Sets the sizes of a socket's buffers; the system makes them as small as it allows.
private func setBufferSizes(of socket: Int32, to size: Int32) {
    var size = size
    let length = socklen_t(MemoryLayout<Int32>.size)
    for option in [SO_SNDBUF, SO_RCVBUF] {
        precondition(setsockopt(socket, SOL_SOCKET, option, &size, length) == 0)
    }
}
