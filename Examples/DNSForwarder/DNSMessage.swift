/// A query or an answer of the domain name system, as far as a forwarder reads it. The records stay as they are, except
/// for their times to live. A client gets no options that it did not send, and no more bytes than it has room for.
struct DNSMessage {
    private(set) var bytes: [UInt8]
    /// The question: the name in small letters, the type and the class.
    let question: [UInt8]
    /// The places of the times to live, and the smallest of them in seconds; `nil` without records.
    private let places: [Int]
    let timeToLive: UInt32?
    /// The place of the question's name, in the letters of the client.
    private let nameRange: Range<Int>
    /// The place of the options record (EDNS), if any.
    private let optionsRange: Range<Int>?

    private static let headerSize = 12
    private static let optionType = 41
    /// The room of a client without options.
    private static let usualRoom = 512

    /// - Returns: `nil` for bytes that are not a message with one question.
    init?(_ bytes: [UInt8]) {
        guard bytes.count >= Self.headerSize else { return nil }
        func number(at place: Int) -> Int { Int(bytes[place]) << 8 | Int(bytes[place + 1]) }
        guard number(at: 4) == 1, let nameEnd = Self.endOfName(at: Self.headerSize, in: bytes),
            nameEnd + 4 <= bytes.count
        else { return nil }
        var place = nameEnd + 4
        var (places, smallest, options): ([Int], UInt32?, Range<Int>?) = ([], nil, nil)
        for _ in 0..<(number(at: 6) + number(at: 8) + number(at: 10)) {
            guard let end = Self.endOfName(at: place, in: bytes), end + 10 <= bytes.count else { return nil }
            let next = end + 10 + number(at: end + 8)
            guard next <= bytes.count else { return nil }
            // In an options record, the place of the time to live has other contents.
            if number(at: end) == Self.optionType {
                options = place..<next
            } else {
                let time = bytes[end + 4..<end + 8].reduce(0 as UInt32) { $0 << 8 | UInt32($1) }
                // A time with the highest bit set is invalid.
                smallest = min(smallest ?? .max, time > .max / 2 ? 0 : time)
                places.append(end + 4)
            }
            place = next
        }
        (self.bytes, self.places, timeToLive) = (bytes, places, smallest)
        (nameRange, optionsRange) = (Self.headerSize..<nameEnd, options)
        question =
            bytes[Self.headerSize..<nameEnd].map { (65...90).contains($0) ? $0 + 32 : $0 }
            + bytes[nameEnd..<nameEnd + 4]
    }

    /// Returns the place after a name, which ends with an empty label or a reference to another name.
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

    /// The number that an answer shares with its query.
    var number: UInt16 {
        get { UInt16(bytes[0]) << 8 | UInt16(bytes[1]) }
        set { (bytes[0], bytes[1]) = (UInt8(newValue >> 8), UInt8(truncatingIfNeeded: newValue)) }
    }

    var isAnswer: Bool { bytes[2] & 0x80 != 0 }
    /// `true` if the server could answer for the name: with records, or with the fact that there is no such name.
    var isConclusive: Bool { [0, 3].contains(bytes[3] & 0xf) && bytes[2] & 2 == 0 }

    // MARK: Clients

    /// The parts of a query that its answer depends on.
    struct Form: Equatable {
        let number: UInt16
        /// The name in the client's spelling.
        let name: [UInt8]
        let hasOptions: Bool
        /// The largest number of bytes in an answer.
        let room: Int
    }

    /// The form of this query.
    var form: Form {
        // The class of an options record is the size of the client's memory.
        let size = optionsRange.map { Int(bytes[$0.lowerBound + 3]) << 8 | Int(bytes[$0.lowerBound + 4]) } ?? 0
        return Form(
            number: number, name: Array(bytes[nameRange]), hasOptions: optionsRange != nil,
            room: max(size, Self.usualRoom))
    }

    /// Returns the bytes of this answer for a query in the given form.
    func bytes(for form: Form) -> [UInt8] {
        var copy = self
        copy.number = form.number
        // Clients may compare their capital letters, which are harder to guess for a forger.
        if form.name.count == nameRange.count { copy.bytes.replaceSubrange(nameRange, with: form.name) }
        if !form.hasOptions { copy.removeOptions() }
        if copy.bytes.count > form.room { copy.truncate(withOptions: form.hasOptions) }
        return copy.bytes
    }

    /// Removes the options, which the client does not know. Names behind them would refer to other places.
    private mutating func removeOptions() {
        guard let optionsRange, optionsRange.upperBound == bytes.count else { return }
        bytes.removeSubrange(optionsRange)
        let count = UInt16(bytes[10]) << 8 | UInt16(bytes[11]) &- 1
        (bytes[10], bytes[11]) = (UInt8(count >> 8), UInt8(truncatingIfNeeded: count))
    }

    /// Leaves the question and perhaps the options, and marks the answer as incomplete.
    private mutating func truncate(withOptions: Bool) {
        let options = withOptions ? optionsRange.map { Array(bytes[$0]) } ?? [] : []
        bytes = bytes[..<(nameRange.upperBound + 4)] + options
        bytes[2] |= 2
        for place in 6..<12 { bytes[place] = 0 }
        bytes[11] = options.isEmpty ? 0 : 1
    }

    /// Returns this answer as of some seconds later.
    func aged(by seconds: UInt32) -> DNSMessage {
        var copy = self
        for place in places {
            let time = bytes[place..<place + 4].reduce(0 as UInt32) { $0 << 8 | UInt32($1) }
            let rest = time > seconds ? time - seconds : 0
            for index in 0..<4 { copy.bytes[place + index] = UInt8(truncatingIfNeeded: rest >> (24 - 8 * index)) }
        }
        return copy
    }

    /// The answer that reports a failure of the server.
    var failure: DNSMessage {
        var copy = self
        copy.bytes[2] |= 0x80
        copy.bytes[3] = copy.bytes[3] & 0xf0 | 2
        return copy
    }
}
