/// Reads requests of the Redis protocol: arrays of bulk strings, and inline commands.
///
/// The parser works on the bytes in place, and continues where it stopped when a request arrives in pieces: no byte of
/// an argument is read twice. Each client has one.
struct RequestParser {
    /// The bounds of a request.
    struct Limits {
        var arguments = 1024 * 1024
        var argumentSize = 8 * 1024 * 1024
        var inlineSize = 64 * 1024
        var requestSize = 16 * 1024 * 1024

        /// The largest number of bytes that an incomplete request takes: its text, the end of a line, and the places of
        /// its words, in an array that may have grown to twice its length.
        var memory: Int { requestSize + 2 * inlineSize + 2 * arguments * MemoryLayout<Range<Int>>.stride }
    }

    enum Result: Equatable {
        /// A request that ends before this offset, with its words, if any, in ``arguments``.
        case request(end: Int)
        /// The rest has not arrived yet.
        case incomplete
        /// The input violates the protocol or its bounds; the text is the error, in the words of Redis.
        case malformed(String)
    }

    /// The ranges of the request's words, counted from its beginning, in ``unquoted`` if it is not `nil`, or else in
    /// the parsed bytes.
    var arguments: ArraySlice<Range<Int>> { words[..<count] }
    /// The ranges as in ``arguments``, followed by leftovers of earlier requests.
    private(set) var words: [Range<Int>] = []
    private(set) var count = 0
    /// The words of an inline command with quotes, unquoted.
    private(set) var unquoted: [UInt8]?
    var limits = Limits()

    /// The number of bytes that the words of an incomplete request take beside its text.
    var heldBytes: Int { position > 0 ? words.capacity * MemoryLayout<Range<Int>>.stride : 0 }

    // The position reached in an incomplete request.
    private var position = 0
    private var missing = 0
    /// The length of the next word; negative if not known yet.
    private var length = -1
    private var lineScanned = 0

    /// Reads the request that begins at `start`. After an incomplete one, the next call must pass the same request,
    /// from its beginning, with more bytes.
    mutating func parse(_ all: UnsafeBufferPointer<UInt8>, from start: Int) -> Result {
        let bytes = UnsafeBufferPointer(rebasing: all[start...])
        guard let first = bytes.first else { return .incomplete }
        if position == 0 {
            // The memory of a huge request is released.
            if words.count > 1024 { words = [] }
            count = 0
            if unquoted != nil { unquoted = nil }
            guard first == UInt8(ascii: "*") else { return parseInline(bytes, start) }
            guard let refusal = parseCount(bytes) else { return parseWords(bytes, start) }
            return refusal
        }
        return parseWords(bytes, start)
    }

    /// Reads the number of words of an array; returns `nil` once it is known.
    private mutating func parseCount(_ bytes: UnsafeBufferPointer<UInt8>) -> Result? {
        var index = 1
        switch number(bytes, &index) {
        case .value(let count):
            guard count <= limits.arguments else { return .malformed("Protocol error: invalid multibulk length") }
            (position, missing, length) = (index, max(0, count), -1)
            return nil
        case .incomplete: return .incomplete
        case .invalid: return .malformed("Protocol error: invalid multibulk length")
        }
    }

    private mutating func parseWords(_ bytes: UnsafeBufferPointer<UInt8>, _ start: Int) -> Result {
        while missing > 0 {
            guard length >= 0 || parseLength(bytes) else { return lengthRefusal(bytes) }
            guard bytes.count - position >= length + 2 else { return .incomplete }
            let end = position + length
            guard bytes[end] == Self.carriageReturn, bytes[end + 1] == Self.lineFeed else {
                return .malformed("Protocol error: a bulk string does not end with CRLF")
            }
            append(position..<end)
            position = end + 2
            missing -= 1
            length = -1
        }
        let end = start + position
        position = 0
        return .request(end: end)
    }

    @inline(__always)
    private mutating func append(_ word: Range<Int>) {
        if count < words.count { words[count] = word } else { words.append(word) }
        count += 1
    }

    /// Reads the length of the next word.
    ///
    /// - Returns: `false` if the length has not arrived yet, or is malformed.
    @inline(__always)
    private mutating func parseLength(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        guard position < bytes.count, bytes[position] == UInt8(ascii: "$") else { return false }
        var index = position + 1
        guard case .value(let value) = number(bytes, &index), value >= 0, value <= limits.argumentSize,
            index + value + 2 <= limits.requestSize
        else { return false }
        (position, length) = (index, value)
        return true
    }

    /// Returns the reason why the length of the next word cannot be read.
    private func lengthRefusal(_ bytes: UnsafeBufferPointer<UInt8>) -> Result {
        guard position < bytes.count else { return .incomplete }
        guard bytes[position] == UInt8(ascii: "$") else {
            let found = String(decoding: [bytes[position]], as: UTF8.self)
            return .malformed("Protocol error: expected '$', got '\(found)'")
        }
        var index = position + 1
        switch number(bytes, &index) {
        case .value(let value) where value >= 0 && value <= limits.argumentSize:
            return .malformed("Protocol error: too big request")
        case .incomplete: return .incomplete
        case .value, .invalid: return .malformed("Protocol error: invalid bulk length")
        }
    }

    private enum Number {
        case value(Int)
        case incomplete, invalid
    }

    /// Reads a decimal number without leading zeros, and the end of its line.
    @inline(__always)
    private func number(_ bytes: UnsafeBufferPointer<UInt8>, _ position: inout Int) -> Number {
        var index = position
        // Most of them have one digit.
        if bytes.count - index > 2, bytes[index] &- UInt8(ascii: "0") <= 9, bytes[index + 1] == Self.carriageReturn,
            bytes[index + 2] == Self.lineFeed
        {
            position = index + 3
            return .value(Int(bytes[index] &- UInt8(ascii: "0")))
        }
        let isNegative = index < bytes.count && bytes[index] == UInt8(ascii: "-")
        if isNegative { index += 1 }
        let first = index
        // Far beyond every limit, and far from an overflow.
        let most = min(bytes.count, first + 15)
        var value = 0
        while index < most {
            let digit = bytes[index] &- UInt8(ascii: "0")
            guard digit <= 9 else { break }
            value = value &* 10 &+ Int(digit)
            index += 1
        }
        guard index < bytes.count else { return index < first + 15 ? .incomplete : .invalid }
        guard index > first, bytes[index] == Self.carriageReturn else { return .invalid }
        guard bytes[first] != UInt8(ascii: "0") || (index == first + 1 && !isNegative) else { return .invalid }
        guard index + 1 < bytes.count else { return .incomplete }
        guard bytes[index + 1] == Self.lineFeed else { return .invalid }
        position = index + 2
        return .value(isNegative ? -value : value)
    }

    /// Reads words between blanks, up to the end of the line.
    private mutating func parseInline(_ bytes: UnsafeBufferPointer<UInt8>, _ start: Int) -> Result {
        guard let end = bytes[lineScanned...].firstIndex(of: Self.lineFeed) else {
            lineScanned = bytes.count
            return bytes.count > limits.inlineSize
                ? .malformed("Protocol error: too big inline request") : .incomplete
        }
        lineScanned = 0
        guard end <= limits.inlineSize else { return .malformed("Protocol error: too big inline request") }
        let line = UnsafeBufferPointer(rebasing: bytes[..<end])
        guard !line.contains(where: { $0 == Self.doubleQuote || $0 == Self.singleQuote }) else {
            var words: [UInt8] = []
            defer { unquoted = words }
            return unquote(line, into: &words)
                ? .request(end: start + end + 1) : .malformed("Protocol error: unbalanced quotes in request")
        }
        var word: Int?
        for index in 0...end {
            let isBlank = Self.isBlank(bytes[index])
            if isBlank, let first = word {
                append(first..<index)
                word = nil
            } else if !isBlank, word == nil {
                word = index
            }
        }
        return .request(end: start + end + 1)
    }

    /// Reads words in quotes: in double ones with `\n`, `\r`, `\t`, `\b`, `\a`, `\xHH` and any other character after a
    /// backslash, in single ones with `\'`. A closing quote ends its word.
    ///
    /// - Returns: `false` if a quote is not closed, or closed within a word.
    private mutating func unquote(_ line: UnsafeBufferPointer<UInt8>, into unquoted: inout [UInt8]) -> Bool {
        var index = 0
        while true {
            while index < line.count, Self.isBlank(line[index]) { index += 1 }
            guard index < line.count else { return true }
            let first = unquoted.count
            while index < line.count, !Self.isBlank(line[index]) {
                let character = line[index]
                index += 1
                guard character == Self.doubleQuote || character == Self.singleQuote else {
                    unquoted.append(character)
                    continue
                }
                guard Self.unquote(line, &index, until: character, into: &unquoted) else { return false }
                guard index == line.count || Self.isBlank(line[index]) else { return false }
            }
            append(first..<unquoted.count)
        }
    }

    /// Reads up to the closing quote, and the quote; returns `false` if there is none.
    private static func unquote(
        _ line: UnsafeBufferPointer<UInt8>, _ index: inout Int, until quote: UInt8, into unquoted: inout [UInt8]
    ) -> Bool {
        while index < line.count {
            let character = line[index]
            index += 1
            if character == quote { return true }
            guard character == UInt8(ascii: "\\"), index < line.count, quote == doubleQuote || line[index] == quote
            else {
                unquoted.append(character)
                continue
            }
            let escaped = line[index]
            index += 1
            switch escaped {
            case UInt8(ascii: "n"): unquoted.append(0x0A)
            case UInt8(ascii: "r"): unquoted.append(0x0D)
            case UInt8(ascii: "t"): unquoted.append(0x09)
            case UInt8(ascii: "b"): unquoted.append(0x08)
            case UInt8(ascii: "a"): unquoted.append(0x07)
            case UInt8(ascii: "x"):
                guard index + 1 < line.count, let high = digit(line[index]), let low = digit(line[index + 1])
                else { fallthrough }
                unquoted.append(high << 4 | low)
                index += 2
            default: unquoted.append(escaped)
            }
        }
        return false
    }

    private static func digit(_ character: UInt8) -> UInt8? {
        Character(UnicodeScalar(character)).hexDigitValue.map { UInt8($0) }
    }

    /// Returns `true` for blanks, as `isspace` does in the C locale.
    @inline(__always)
    private static func isBlank(_ character: UInt8) -> Bool {
        character == UInt8(ascii: " ") || (0x09...0x0D).contains(character)
    }

    private static let doubleQuote = UInt8(ascii: "\"")
    private static let singleQuote = UInt8(ascii: "'")
    private static let carriageReturn = UInt8(ascii: "\r")
    private static let lineFeed = UInt8(ascii: "\n")
}
