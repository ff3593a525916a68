#if Adapters
import RunLoopKit
import RunLoopUnix

/// A client of WebSocket that sends any frames. On its loop's thread.
final class FrameSocket {
    let peer: Connection
    private var received: [UInt8] = []

    init(_ loop: RunLoop, _ path: String = "/socket") async throws {
        peer = try await Connection.connect(host: "web", port: 80, on: loop)
        try await peer.write(Self.handshake(path))
    }

    /// Returns the head of the answer to the handshake.
    nonisolated(nonsending) func head() async throws -> String {
        while true {
            if let end = received.indices.first(where: { received[$0...].starts(with: Array("\r\n\r\n".utf8)) }) {
                defer { received.removeFirst(end + 4) }
                return String(decoding: received[..<end], as: UTF8.self)
            }
            guard let bytes = try await peer.read() else { return String(decoding: received, as: UTF8.self) }
            received += bytes
        }
    }

    /// Sends a frame, masked as a client's must be.
    nonisolated(nonsending) func send(
        _ opcode: UInt8, _ bytes: [UInt8] = [], isFinal: Bool = true, isMasked: Bool = true
    ) async throws {
        var frame: [UInt8] = [isFinal ? 0x80 | opcode : opcode]
        let mask: UInt8 = isMasked ? 0x80 : 0
        if bytes.count < 126 {
            frame.append(mask | UInt8(bytes.count))
        } else {
            frame += [mask | 126, UInt8(bytes.count >> 8), UInt8(bytes.count & 255)]
        }
        if isMasked { frame += [1, 2, 3, 4] }
        frame += zip(bytes, 0...).map { isMasked ? $0 ^ [1, 2, 3, 4][$1 % 4] : $0 }
        try await peer.write(frame)
    }

    nonisolated(nonsending) func send(_ text: String) async throws { try await send(1, Array(text.utf8)) }

    /// Returns the next frame, as its opcode and its text or status; `end` at the end.
    nonisolated(nonsending) func next() async throws -> String {
        while true {
            if received.count >= 2 {
                let short = Int(received[1] & 127)
                let header = short < 126 ? 2 : 4
                if received.count >= header {
                    let count = short < 126 ? short : Int(received[2]) << 8 | Int(received[3])
                    if received.count >= header + count {
                        let (opcode, bytes) = (received[0] & 15, Array(received[header..<header + count]))
                        received.removeFirst(header + count)
                        let status = bytes.count >= 2 ? Int(bytes[0]) << 8 | Int(bytes[1]) : 0
                        return "\(opcode) \(opcode == 8 ? "\(status)" : String(decoding: bytes, as: UTF8.self))"
                    }
                }
            }
            guard let bytes = try await peer.read() else { return "end" }
            received += bytes
        }
    }

    static func handshake(_ path: String) -> String {
        """
        GET \(path) HTTP/1.1\r\nhost: web\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\
        sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n
        """
    }
}
#endif
