/// Reads requests of the Redis protocol (RESP2): arrays of bulk strings, and inline commands.
///
/// It works on the bytes where they are. What it finds are ranges of them, in an array that is used again and again.
struct RequestParser {
    /// The bounds of a request.
    struct Limits {
        var arguments = 1024 * 1024
        var argumentSize = 8 * 1024 * 1024
        var inlineSize = 64 * 1024
    }

    enum Result: Equatable {
        /// A request that ends before this offset; its words are in ``arguments``. It may have none.
        case request(end: Int)
        /// The rest has not come yet.
        case incomplete
        /// This is not the protocol, or more than is allowed: the text says what, as Redis says it.
        case malformed(String)
    }

    /// Where the words of the request are: in ``unquoted`` if there is that, or else in the bytes that were parsed.
    private(set) var arguments: [Range<Int>] = []
    /// The words of an inline command with quotes, without them.
    private(set) var unquoted: [UInt8]?
    var limits = Limits()

    /// Reads the request that begins at `start`.
    mutating func parse(_ bytes: UnsafeBufferPointer<UInt8>, from start: Int) -> Result {
        arguments.removeAll(keepingCapacity: true)
        unquoted = nil
        guard start < bytes.count else { return .incomplete }
        return bytes[start] == UInt8(ascii: "*") ? parseArray(bytes, start) : parseInline(bytes, start)
    }

    private mutating func parseArray(_ bytes: UnsafeBufferPointer<UInt8>, _ start: Int) -> Result {
        var position = start + 1
        let count: Int
        switch number(bytes, &position) {
        case .value(let value): count = value
        case .incomplete: return .incomplete
        case .invalid: return .malformed("Protocol error: invalid multibulk length")
        }
        guard count <= limits.arguments else { return .malformed("Protocol error: invalid multibulk length") }
        guard count > 0 else { return .request(end: position) }
        for _ in 0..<count {
            guard position < bytes.count else { return .incomplete }
            guard bytes[position] == UInt8(ascii: "$") else {
                let found = String(decoding: [bytes[position]], as: UTF8.self)
                return .malformed("Protocol error: expected '$', got '\(found)'")
            }
            position += 1
            let length: Int
            switch number(bytes, &position) {
            case .value(let value): length = value
            case .incomplete: return .incomplete
            case .invalid: return .malformed("Protocol error: invalid bulk length")
            }
            guard length >= 0, length <= limits.argumentSize else {
                return .malformed("Protocol error: invalid bulk length")
            }
            guard bytes.count - position >= length + 2 else { return .incomplete }
            guard bytes[position + length] == Self.carriageReturn, bytes[position + length + 1] == Self.lineFeed else {
                return .malformed("Protocol error: a bulk string does not end with CRLF")
            }
            arguments.append(position..<position + length)
            position += length + 2
        }
        return .request(end: position)
    }

    private enum Number {
        case value(Int)
        case incomplete, invalid
    }

    /// Reads a decimal number, which has no zeros in front, and the end of its line.
    private func number(_ bytes: UnsafeBufferPointer<UInt8>, _ position: inout Int) -> Number {
        var index = position
        var value = 0
        let isNegative = index < bytes.count && bytes[index] == UInt8(ascii: "-")
        if isNegative { index += 1 }
        let first = index
        while index < bytes.count, bytes[index] &- UInt8(ascii: "0") <= 9 {
            // Far beyond every limit, and far from an overflow.
            guard index - first < 15 else { return .invalid }
            value = value * 10 + Int(bytes[index] &- UInt8(ascii: "0"))
            index += 1
        }
        guard index < bytes.count else { return index - first < 16 ? .incomplete : .invalid }
        guard index > first, bytes[index] == Self.carriageReturn else { return .invalid }
        guard bytes[first] != UInt8(ascii: "0") || (index == first + 1 && !isNegative) else { return .invalid }
        guard index + 1 < bytes.count else { return .incomplete }
        guard bytes[index + 1] == Self.lineFeed else { return .invalid }
        position = index + 2
        return .value(isNegative ? -value : value)
    }

    /// Words between blanks, up to the end of the line.
    private mutating func parseInline(_ bytes: UnsafeBufferPointer<UInt8>, _ start: Int) -> Result {
        guard let end = bytes[start...].firstIndex(of: Self.lineFeed) else {
            return bytes.count - start > limits.inlineSize
                ? .malformed("Protocol error: too big inline request") : .incomplete
        }
        guard end - start <= limits.inlineSize else { return .malformed("Protocol error: too big inline request") }
        let line = UnsafeBufferPointer(rebasing: bytes[start..<end])
        guard !line.contains(where: { $0 == Self.doubleQuote || $0 == Self.singleQuote }) else {
            var words: [UInt8] = []
            defer { unquoted = words }
            return unquote(line, into: &words)
                ? .request(end: end + 1) : .malformed("Protocol error: unbalanced quotes in request")
        }
        var word: Int?
        for index in start...end {
            let isBlank = Self.isBlank(bytes[index])
            if isBlank, let first = word {
                arguments.append(first..<index)
                word = nil
            } else if !isBlank, word == nil {
                word = index
            }
        }
        return .request(end: end + 1)
    }

    /// Words in quotes: in double ones with `\n`, `\r`, `\t`, `\b`, `\a`, `\xHH` and any other character after a
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
            arguments.append(first..<unquoted.count)
        }
    }

    /// Reads up to the quote that ends it, and the quote; `false` if there is none.
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

    /// As `isspace` in the C locale.
    @inline(__always)
    private static func isBlank(_ character: UInt8) -> Bool {
        character == UInt8(ascii: " ") || (0x09...0x0D).contains(character)
    }

    private static let doubleQuote = UInt8(ascii: "\"")
    private static let singleQuote = UInt8(ascii: "'")
    private static let carriageReturn = UInt8(ascii: "\r")
    private static let lineFeed = UInt8(ascii: "\n")
}
