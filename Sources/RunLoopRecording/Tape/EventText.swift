internal import Glibc
@_spi(Ports) internal import RunLoopCore

/// The words for events, in a list or a divergence.
enum EventText {
    /// Describes the next event, as it was recorded.
    static func describe(_ reader: inout TapeReader, after lastTime: Int64, _ contents: RecordContents) -> String {
        if reader.isAtEnd { return "the end" }
        if reader.next >= 0x80 { return "the time, \(RunLoop.Instant(nanoseconds: time(&reader, after: lastTime)))" }
        let first = reader.byte()
        guard let kind = EventKind(rawValue: first) else { return "an unknown event (\(first))" }
        switch kind {
        case .wait:
            _ = reader.sum()
            let count = passOverWait(&reader)
            return "a wait, after which \(count) \(count == 1 ? "descriptor was" : "descriptors were") ready"
        case .foundMail, .refused:
            let count = reader.unsigned()
            return kind == .foundMail ? "mail, at check \(count)" : "a post that is refused, after \(count)"
        case .tookMail:
            let runs = reader.unsigned()
            var texts: [String] = []
            for _ in 0..<min(runs, reader.remaining) {
                texts.append("thread \(reader.unsigned()): \(reader.unsigned())")
            }
            return "its mail (\(texts.joined(separator: ", ")))"
        case .decided: return "a decision that depends on other threads: \(reader.byte() != 0)"
        case .end:
            _ = reader.sum()
            return "nothing more: the program has ended"
        case .read, .readAt:
            let numbers = kind.arguments.map { _ in reader.number() }
            let result = reader.number()
            if result > 0 {
                if contents.keepsPayloads { reader.skip(result) } else { _ = reader.fixed() }
            }
            return "\(call(kind, numbers)), which gave \(outcome(result))"
        case .write, .send, .sendPieces, .writeAt:
            let numbers = kind.arguments.map { _ in reader.number() }
            let result = reader.number()
            if result > 0 {
                _ = reader.fixed()
                if contents.keepsOutput { reader.skip(result) }
            }
            return "\(call(kind, numbers)), which took \(outcome(result))"
        default:
            let text = call(kind, reader.block())
            _ = reader.block()
            return text
        }
    }

    /// Skips a wait after its sum, and returns the number of ready descriptors.
    static func passOverWait(_ reader: inout TapeReader) -> UInt64 {
        _ = reader.byte()
        let count = reader.unsigned()
        for _ in 0..<min(count, reader.remaining) {
            _ = reader.unsigned()
            _ = reader.unsigned()
            _ = reader.byte()
        }
        return count
    }

    /// Returns the time of a reading of the clock, which is next.
    static func time(_ reader: inout TapeReader, after lastTime: Int64) -> Int64 {
        let first = reader.byte()
        var passed = UInt64(first & 0x3f)
        if first & 0x40 != 0 { passed |= reader.unsigned() << 6 }
        return lastTime &+ Int64(bitPattern: passed)
    }

    private static func outcome(_ result: Int) -> String {
        result < 0 ? "errno \(result.magnitude)" : "\(result) bytes"
    }

    static func wait(until deadline: RunLoop.Instant) -> String {
        switch deadline {
        case .distantPast: "a wait without sleeping"
        case .distantFuture: "a wait without an end"
        default: "a wait until \(deadline)"
        }
    }

    /// Returns a call with its arguments.
    static func call(_ kind: EventKind, _ numbers: [Int]) -> String {
        "\(kind)(\(numbers.map { "\($0)" }.joined(separator: ", ")))"
    }

    /// Returns a call with the bytes of any arguments.
    static func call(_ kind: EventKind, _ arguments: [UInt8]) -> String {
        var bytes = ByteDecoder(arguments)
        let texts = kind.arguments.map { argument in
            switch argument {
            case .number: "\(bytes.number())"
            case .text: quoted(bytes.text())
            case .digest: "\(bytes.number()) bytes (\(String(bytes.fixed(), radix: 16)))"
            }
        }
        return "\(kind)(\(texts.joined(separator: ", ")))"
    }

    /// Returns the first bytes in quotes.
    static func beginning(of bytes: UnsafeRawBufferPointer) -> String {
        let text = String(decoding: bytes.prefix(40), as: UTF8.self)
        return quoted(text) + (bytes.count > 40 ? " …" : "")
    }
}
