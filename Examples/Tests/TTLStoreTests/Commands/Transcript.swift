import Glibc
import Testing

@testable import TTLStore

/// The replies of redis-server to random requests, recorded by `record-transcript`.
enum Transcript {
    struct Line {
        let text: Substring
        let request: [UInt8]
        let reply: [UInt8]
    }

    static func lines() throws -> [Line] {
        let path = #filePath.dropLast("Transcript.swift".count) + "redis-7.0.transcript"
        let file = try #require(fopen(String(path), "r"), "\(path) is missing")
        defer { fclose(file) }
        var text: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 1 << 16)
        while case let count = fread(&piece, 1, piece.count, file), count > 0 { text += piece[..<count] }
        return String(decoding: text, as: UTF8.self).split(separator: "\n").map { line in
            let parts = line.split(separator: "\t", omittingEmptySubsequences: false)
            return Line(text: line, request: bytes(parts[0]), reply: bytes(parts[1]))
        }
    }

    private static func bytes(_ text: Substring) -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "\\"), let kind = rest.popFirst() else {
                bytes.append(byte)
                continue
            }
            switch kind {
            case UInt8(ascii: "r"): bytes.append(0x0D)
            case UInt8(ascii: "n"): bytes.append(0x0A)
            default:
                bytes.append(UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)!)
                rest = rest.dropFirst(2)
            }
        }
        return bytes
    }

    /// Returns the reply that a new connection would get for the request, with the mark of its end if it is closed
    /// then.
    static func reply(to request: [UInt8], _ commands: Commands) -> [UInt8] {
        var parser = RequestParser()
        var reply = Reply()
        let batch = request.withUnsafeBufferPointer { bytes in
            commands.perform(all: bytes, &parser, Session(), &reply)
        }
        return reply.bytes + (batch.end == .last ? "<closed>" : "").utf8
    }
}
