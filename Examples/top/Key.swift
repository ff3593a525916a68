/// A key of the keyboard.
enum Key: Equatable {
    case character(Character)
    case function(Int)
    case up, down, left, right, pageUp, pageDown, home, end
    case tab, backTab, enter, escape, backspace, interrupt
}

/// Makes keys from the bytes of a terminal, which may cut a sequence anywhere.
struct KeyReader {
    private var bytes: [UInt8] = []

    /// `true` while an escape is kept that may be the key, or the beginning of a sequence.
    var isWaiting: Bool { bytes.first == 0x1B }

    mutating func read(_ new: [UInt8]) -> [Key] {
        bytes += new
        var keys: [Key] = []
        while let (key, count) = next() {
            bytes.removeFirst(count)
            if let key { keys.append(key) }
        }
        return keys
    }

    /// Returns the key of a kept escape that nothing has followed for a while.
    mutating func timedOut() -> [Key] {
        guard isWaiting else { return [] }
        bytes = []
        return [.escape]
    }

    /// - Returns: the key, or `nil` for a key without a meaning here, and the number of its bytes; `nil` if they are
    ///   incomplete.
    private func next() -> (Key?, Int)? {
        guard let first = bytes.first else { return nil }
        switch first {
        case 0x1B: return sequence()
        case 0x03: return (.interrupt, 1)
        case 0x09: return (.tab, 1)
        case 0x0A, 0x0D: return (.enter, 1)
        case 0x08, 0x7F: return (.backspace, 1)
        case ..<0x20: return (nil, 1)
        case ..<0x80: return (.character(Character(Unicode.Scalar(first))), 1)
        default:
            let length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC0 ? 2 : 1
            guard bytes.count >= length else { return nil }
            return (String(decoding: bytes[..<length], as: UTF8.self).first.map { .character($0) }, length)
        }
    }

    private func sequence() -> (Key?, Int)? {
        guard bytes.count > 1 else { return nil }
        switch bytes[1] {
        case UInt8(ascii: "O"):
            guard bytes.count > 2 else { return nil }
            return (Self.single[bytes[2]], 3)
        case UInt8(ascii: "["):
            guard let end = bytes.dropFirst(2).firstIndex(where: { (0x40...0x7E).contains($0) }) else {
                return bytes.count > 32 ? (nil, bytes.count) : nil
            }
            // On the console of Linux: ESC [ [ A.
            if bytes[end] == UInt8(ascii: "["), end == 2 {
                guard bytes.count > 3 else { return nil }
                return (.function(Int(bytes[3]) - 64), 4)
            }
            if bytes[end] != UInt8(ascii: "~") { return (Self.single[bytes[end]], end + 1) }
            let number = bytes[2..<end].prefix { $0 != UInt8(ascii: ";") }
            return (Int(String(decoding: number, as: UTF8.self)).flatMap { Self.numbered[$0] }, end + 1)
        default: return (.escape, 1)
        }
    }

    private static let single: [UInt8: Key] = [
        UInt8(ascii: "A"): .up, UInt8(ascii: "B"): .down, UInt8(ascii: "C"): .right, UInt8(ascii: "D"): .left,
        UInt8(ascii: "H"): .home, UInt8(ascii: "F"): .end, UInt8(ascii: "Z"): .backTab,
        UInt8(ascii: "P"): .function(1), UInt8(ascii: "Q"): .function(2), UInt8(ascii: "R"): .function(3),
        UInt8(ascii: "S"): .function(4),
    ]
    private static let numbered: [Int: Key] = [
        1: .home, 4: .end, 5: .pageUp, 6: .pageDown, 7: .home, 8: .end, 11: .function(1), 12: .function(2),
        13: .function(3), 14: .function(4), 15: .function(5), 17: .function(6), 18: .function(7), 19: .function(8),
        20: .function(9), 21: .function(10),
    ]
}
