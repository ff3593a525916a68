import RunLoopKit
import RunLoopUnix

/// A member of the chat throughout the day, who returns whenever the connection ends.
final class DayMember {
    private let loop: RunLoop
    private let name: String
    private let day: Day
    private var random: RunLoop.RandomNumbers
    private var sent = 0

    init(_ number: Int, on loop: RunLoop, _ day: Day) {
        (self.loop, self.day) = (loop, day)
        name = "m\(number)"
        random = loop.randomNumbers
        join()
    }

    private func delay(upTo seconds: Int) -> Duration { .seconds(Int.random(in: 1...seconds, using: &random)) }

    private func join() {
        loop.perform(afterDelay: delay(upTo: 60)) { [self] in
            loop.task { [self] in
                try? await attend()
                join()
            }
        }
    }

    private func attend() async throws {
        let peer = try await Connection.connect(host: "web", port: 80, on: loop)
        defer { peer.close() }
        try await peer.write(
            """
            GET /chat HTTP/1.1\r\nhost: web\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
            sec-websocket-version: 13\r\nsec-websocket-key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n
            """)
        var head = ""
        while !head.hasSuffix("\r\n\r\n") {
            let byte = try await loop.withTimeout(.seconds(600)) { try await receive(1, from: peer) }
            head += String(decoding: byte, as: UTF8.self)
        }
        // A daemon that stops has no chat.
        guard head.hasPrefix("HTTP/1.1 101 ") else { return }
        try await talk(with: peer)
    }

    private func talk(with peer: Connection) async throws {
        /// The text that has not come back yet.
        var own: String?
        var last: String?
        let posts = loop.task { [self] in
            while true {
                try await loop.clock.sleep(for: delay(upTo: 3_600))
                if let own { return day.fail("\(own) has not come back to its sender, who is connected") }
                sent += 1
                own = "\(name)-\(sent)"
                try await send(1, Array(own!.utf8), to: peer)
            }
        }
        defer { posts.cancel() }
        while true {
            // The daemon pings each minute, so silence means a cut link.
            let (opcode, bytes) = try await loop.withTimeout(.seconds(180)) {
                let head = try await receive(2, from: peer)
                return (head[0] & 15, try await receive(Int(head[1]), from: peer))
            }
            switch opcode {
            case 1:
                let text = String(decoding: bytes, as: UTF8.self)
                day.receive(text, after: last, by: name)
                last = text
                if own == text { own = nil }
            case 9: try await send(10, bytes, to: peer)
            default: return try await send(opcode, bytes, to: peer)
            }
        }
    }

    private struct Ended: Error {}

    private func receive(_ count: Int, from peer: Connection) async throws -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < count {
            guard let more = try await peer.read(atMost: count - bytes.count) else { throw Ended() }
            bytes += more
        }
        return bytes
    }

    /// Sends a short frame, whose mask is zero.
    private func send(_ opcode: UInt8, _ bytes: [UInt8], to peer: Connection) async throws {
        try await peer.write([0x80 | opcode, 0x80 | UInt8(bytes.count), 0, 0, 0, 0] + bytes)
    }
}
