/// A query or an answer of the domain name system, as far as a forwarder reads it. The bytes stay as they are, except
/// for the number of the message and the times to live.
struct DNSMessage {
    private(set) var bytes: [UInt8]
    /// The question: its name in small letters, its type and its class.
    let question: [UInt8]
    /// The places of the times to live, and the smallest of them in seconds; `nil` without records.
    private let places: [Int]
    let timeToLive: UInt32?

    private static let headerSize = 12
    private static let optionType = 41

    /// - Returns: `nil` for bytes that are not a message with one question.
    init?(_ bytes: [UInt8]) {
        guard bytes.count >= Self.headerSize else { return nil }
        func number(at place: Int) -> Int { Int(bytes[place]) << 8 | Int(bytes[place + 1]) }
        guard number(at: 4) == 1, let nameEnd = Self.endOfName(at: Self.headerSize, in: bytes),
            nameEnd + 4 <= bytes.count
        else { return nil }
        var place = nameEnd + 4
        var (places, smallest): ([Int], UInt32?) = ([], nil)
        for _ in 0..<(number(at: 6) + number(at: 8) + number(at: 10)) {
            guard let end = Self.endOfName(at: place, in: bytes), end + 10 <= bytes.count else { return nil }
            // The place of the time to live has other things in a record of options.
            if number(at: end) != Self.optionType {
                let time = bytes[end + 4..<end + 8].reduce(0 as UInt32) { $0 << 8 | UInt32($1) }
                // A time with the highest bit is none.
                smallest = min(smallest ?? .max, time > .max / 2 ? 0 : time)
                places.append(end + 4)
            }
            place = end + 10 + number(at: end + 8)
            guard place <= bytes.count else { return nil }
        }
        (self.bytes, self.places, timeToLive) = (bytes, places, smallest)
        question =
            bytes[Self.headerSize..<nameEnd].map { (65...90).contains($0) ? $0 + 32 : $0 }
            + bytes[nameEnd..<nameEnd + 4]
    }

    /// The place after a name, which ends with an empty label or a reference to another name.
    private static func endOfName(at start: Int, in bytes: [UInt8]) -> Int? {
        var place = start
        while place < bytes.count {
            switch bytes[place] {
            case 0: return place + 1
            case 0xc0...: return place + 2 <= bytes.count ? place + 2 : nil
            case let count: place += Int(count) + 1
            }
        }
        return nil
    }

    /// The number that an answer has in common with its query.
    var number: UInt16 {
        get { UInt16(bytes[0]) << 8 | UInt16(bytes[1]) }
        set { (bytes[0], bytes[1]) = (UInt8(newValue >> 8), UInt8(truncatingIfNeeded: newValue)) }
    }

    var isAnswer: Bool { bytes[2] & 0x80 != 0 }
    /// Whether the server could say something about the name: that it has records, or that there is no such name.
    var isConclusive: Bool { [0, 3].contains(bytes[3] & 0xf) && bytes[2] & 2 == 0 }

    /// The same answer some seconds later.
    func aged(by seconds: UInt32) -> DNSMessage {
        var copy = self
        for place in places {
            let time = bytes[place..<place + 4].reduce(0 as UInt32) { $0 << 8 | UInt32($1) }
            let rest = time > seconds ? time - seconds : 0
            for index in 0..<4 { copy.bytes[place + index] = UInt8(truncatingIfNeeded: rest >> (24 - 8 * index)) }
        }
        return copy
    }

    /// The answer that the server has failed.
    var failure: DNSMessage {
        var copy = self
        copy.bytes[2] |= 0x80
        copy.bytes[3] = copy.bytes[3] & 0xf0 | 2
        return copy
    }
}
