#if Adapters
import RunLoopKit
import RunLoopUnix

/// A side of HTTP/2 that sends any frames. On its loop's thread.
final class FrameClient {
    struct Frame {
        let type: UInt8
        let flags: UInt8
        let stream: UInt32
        let payload: [UInt8]

        /// The error of a frame that ends something: its last four bytes, or the four after the last stream.
        var error: UInt32? {
            switch type {
            case FrameClient.reset: FrameClient.number(payload[0..<4])
            case FrameClient.goAway: FrameClient.number(payload[4..<8])
            default: nil
            }
        }

        var endsStream: Bool { type <= FrameClient.headers && flags & FrameClient.endStream != 0 }
    }

    static let (data, headers, reset, settings, ping, goAway): (UInt8, UInt8, UInt8, UInt8, UInt8, UInt8) =
        (0, 1, 3, 4, 6, 7)
    static let windowUpdate: UInt8 = 8
    static let (endStream, endHeaders, ack): (UInt8, UInt8, UInt8) = (1, 4, 1)

    let peer: Connection
    private var received: [UInt8] = []
    private var texts: [UInt32: String] = [:]

    /// The number of bytes that come before the peer's frames.
    private var skipped: Int

    static let preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

    init(_ peer: Connection, skipping skipped: Int) {
        (self.peer, self.skipped) = (peer, skipped)
    }

    /// Connects to the host `web` as a client.
    convenience init(_ loop: RunLoop) async throws {
        self.init(try await Connection.connect(host: "web", port: 80, on: loop), skipping: 0)
        try await peer.write(Self.preface)
        try await send(Self.settings)
    }

    /// Returns the head of a request, compressed with the static table: the method, the path, and `host: x`.
    static func head(_ method: String = "GET", _ path: String = "/") -> [UInt8] {
        // Literals that are not indexed, with names of the table.
        func field(_ name: UInt8, _ value: String) -> [UInt8] { [name, UInt8(value.utf8.count)] + Array(value.utf8) }
        return field(2, method) + field(4, path) + [0x86] + field(1, "x")
    }

    nonisolated(nonsending) func send(
        _ type: UInt8, _ flags: UInt8 = 0, _ stream: UInt32 = 0, _ payload: [UInt8] = []
    ) async throws {
        try await peer.write(Self.bytes(type, flags, stream, payload))
    }

    /// Returns the bytes of a frame.
    static func bytes(_ type: UInt8, _ flags: UInt8, _ stream: UInt32, _ payload: [UInt8]) -> [UInt8] {
        let count = payload.count
        let length = [UInt8(count >> 16), UInt8(count >> 8 & 255), UInt8(count & 255)]
        let number = (0..<4).map { UInt8(truncatingIfNeeded: stream >> (24 - 8 * $0)) }
        return length + [type, flags] + number + payload
    }

    /// Returns the next frame; `nil` at the end.
    nonisolated(nonsending) func next() async throws -> Frame? {
        while true {
            if skipped > 0, received.count >= skipped {
                received.removeFirst(skipped)
                skipped = 0
            }
            if skipped == 0, received.count >= 9 {
                let length = Int(Self.number([0] + received[0..<3]))
                if received.count >= 9 + length {
                    defer { received.removeFirst(9 + length) }
                    return Frame(
                        type: received[3], flags: received[4], stream: Self.number(received[5..<9]) & 0x7fff_ffff,
                        payload: Array(received[9..<9 + length]))
                }
            }
            guard let bytes = try await peer.read() else { return nil }
            received += bytes
        }
    }

    /// Returns the data of a stream until it ends, with a mark for a reset.
    nonisolated(nonsending) func body(of stream: UInt32) async throws -> String {
        while let frame = try await next() {
            if frame.type == Self.data {
                texts[frame.stream, default: ""] += String(decoding: frame.payload, as: UTF8.self)
            }
            guard frame.stream == stream else { continue }
            let text = texts[stream, default: ""]
            if frame.type == Self.reset { return text + "|reset \(frame.error ?? 0)" }
            if frame.endsStream { return text }
        }
        return texts[stream, default: ""] + "|closed"
    }

    private static func number(_ bytes: some Sequence<UInt8>) -> UInt32 { bytes.reduce(0) { $0 << 8 | UInt32($1) } }
}
#endif
