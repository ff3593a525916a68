internal import FoundationEssentials
internal import RunLoopKit

/// Reads the values of a JSON text that arrives in pieces. An error names the line and the column of invalid JSON, or
/// the line on which a value of another kind begins.
///
/// `JSONDecoder` cannot do this: it requires one whole value, on Linux its error has no position, it accepts a trailing
/// comma, and of a repeated key it silently keeps one value.
struct JSONParser {
    private static let deepest = 100

    /// The next piece of the text; empty at its end.
    private let read: () -> [UInt8]
    private var hasEnded = false
    /// The text read and still needed, which holds the whole value being parsed.
    private(set) var text: [UInt8] = []
    private var position = 0
    private var depth = 0
    /// The beginning of the value being parsed.
    private var start = (position: 0, line: 1, column: 1)

    init(_ read: @escaping () -> [UInt8]) {
        self.read = read
    }

    // MARK: From value to value

    /// The line on which the value begins.
    var line: Int { start.line }

    /// Moves to the beginning of the next value, if there is one.
    mutating func findValue() -> Bool {
        skipSpace()
        beginHere()
        return next != nil
    }

    /// Returns the only value of the whole text.
    mutating func onlyValue() throws(ScenarioError) -> JSONValue {
        _ = findValue()
        let value = try value()
        skipSpace()
        guard next == nil else { throw fault("expected nothing more after the value") }
        return value
    }

    /// Skips a value that is not JSON. A broken object extends to the next line that begins with a brace, any other
    /// value to the end of its line.
    mutating func skipBrokenValue() {
        position = start.position
        let isObject = next == UInt8(ascii: "{")
        repeat {
            while let byte = next, byte != UInt8(ascii: "\n") { position += 1 }
            if next != nil { position += 1 }
            beginHere()
        } while isObject && next != nil && next != UInt8(ascii: "{")
    }

    // MARK: Values

    mutating func value() throws(ScenarioError) -> JSONValue {
        depth += 1
        defer { depth -= 1 }
        guard depth <= Self.deepest else { throw fault("nested more than \(Self.deepest) levels deep") }
        switch next {
        case UInt8(ascii: "{"): return .object(try object())
        case UInt8(ascii: "["): return .array(try array())
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): return try word("true", .bool(true))
        case UInt8(ascii: "f"): return try word("false", .bool(false))
        case UInt8(ascii: "n"): return try word("null", .null)
        case .some(let byte) where "-0123456789".utf8.contains(byte): return .number(try number())
        default: throw fault("expected a value")
        }
    }

    private mutating func object() throws(ScenarioError) -> [String: JSONValue] {
        var members: [String: JSONValue] = [:]
        position += 1
        skipSpace()
        if take("}") { return members }
        repeat {
            skipSpace()
            guard next == UInt8(ascii: "\"") else { throw fault("expected a key in quotes") }
            let start = position
            let key = try string()
            skipSpace()
            guard take(":") else { throw fault("expected ':' after the key") }
            skipSpace()
            guard members.updateValue(try value(), forKey: key) == nil else {
                throw fault("the key \(quoted(key)) is given twice", at: start)
            }
            skipSpace()
        } while take(",")
        guard take("}") else { throw fault("expected ',' or '}' in the object") }
        return members
    }

    private mutating func array() throws(ScenarioError) -> [JSONValue] {
        var elements: [JSONValue] = []
        position += 1
        skipSpace()
        if take("]") { return elements }
        repeat {
            skipSpace()
            elements.append(try value())
            skipSpace()
        } while take(",")
        guard take("]") else { throw fault("expected ',' or ']' in the array") }
        return elements
    }

    private mutating func word(_ word: String, _ value: JSONValue) throws(ScenarioError) -> JSONValue {
        let start = position
        while let byte = next, UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte { position += 1 }
        guard text[start..<position].elementsEqual(word.utf8) else { throw fault("expected a value", at: start) }
        return value
    }

    private mutating func number() throws(ScenarioError) -> Decimal? {
        let start = position
        _ = take("-")
        if !take("0") { try digits() }
        if take(".") { try digits() }
        if take("e") || take("E") {
            _ = take("+") || take("-")
            try digits()
        }
        return Decimal(string: String(decoding: text[start..<position], as: UTF8.self))
    }

    private mutating func digits() throws(ScenarioError) {
        let start = position
        while let byte = next, UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte { position += 1 }
        guard position > start else { throw fault("expected a digit") }
    }

    // MARK: Strings

    private mutating func string() throws(ScenarioError) -> String {
        let start = position
        var bytes: [UInt8] = []
        position += 1
        while !take("\"") {
            guard let byte = next else { throw fault("expected '\"' at the end of the string") }
            guard byte >= 0x20 else { throw fault("a control character in a string must be escaped") }
            if byte == UInt8(ascii: "\\") {
                bytes += try escape()
            } else {
                bytes.append(byte)
                position += 1
            }
        }
        guard let string = String(validating: bytes, as: UTF8.self) else { throw notUTF8(from: start) }
        return string
    }

    private func notUTF8(from start: Int) -> ScenarioError {
        var decoder = Unicode.UTF8.ForwardParser()
        var bytes = text[start...].makeIterator()
        var valid = start
        while case .valid(let scalar) = decoder.parseScalar(from: &bytes) { valid += scalar.count }
        return fault("this is not UTF-8", at: valid)
    }

    private mutating func escape() throws(ScenarioError) -> String.UTF8View {
        let start = position
        position += 1
        guard take("u") else {
            guard let byte = next, let plain = Self.escapes[byte] else { throw fault("unknown escape", at: start) }
            position += 1
            return plain.utf8
        }
        let unit = try hexadecimal()
        guard 0xD800...0xDFFF ~= unit else { return String(decoding: [unit], as: UTF16.self).utf8 }
        guard unit < 0xDC00, take("\\"), take("u"), case let low = try hexadecimal(), 0xDC00...0xDFFF ~= low else {
            throw fault("half of a surrogate pair", at: start)
        }
        return String(decoding: [unit, low], as: UTF16.self).utf8
    }

    private static let escapes: [UInt8: String] = [
        UInt8(ascii: "\""): "\"", UInt8(ascii: "\\"): "\\", UInt8(ascii: "/"): "/", UInt8(ascii: "b"): "\u{8}",
        UInt8(ascii: "f"): "\u{C}", UInt8(ascii: "n"): "\n", UInt8(ascii: "r"): "\r", UInt8(ascii: "t"): "\t",
    ]

    private mutating func hexadecimal() throws(ScenarioError) -> UInt16 {
        var value: UInt16 = 0
        for _ in 0..<4 {
            guard let byte = next, let digit = Character(UnicodeScalar(byte)).hexDigitValue else {
                throw fault("expected four hexadecimal digits")
            }
            value = value << 4 | UInt16(digit)
            position += 1
        }
        return value
    }

    // MARK: Bytes

    private var next: UInt8? {
        mutating get {
            if position == text.count, !hasEnded {
                let piece = read()
                hasEnded = piece.isEmpty
                text += piece
            }
            return position < text.count ? text[position] : nil
        }
    }

    private mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard next == UInt8(ascii: character) else { return false }
        position += 1
        return true
    }

    private mutating func skipSpace() {
        while let byte = next, " \t\r\n".utf8.contains(byte) { position += 1 }
    }

    /// Marks the beginning of the next value; the text before it is no longer needed.
    private mutating func beginHere() {
        start = place(of: position)
        // Not for every value, because the text after it has to be moved.
        guard position >= 1 << 16, position > text.count / 2 else { return }
        text.removeFirst(position)
        position = 0
        start.position = 0
    }

    private func place(of position: Int) -> (position: Int, line: Int, column: Int) {
        let passed = text[start.position..<position]
        // A column is a character: the bytes that continue one do not count.
        func columns(_ bytes: ArraySlice<UInt8>) -> Int { bytes.count { $0 & 0xC0 != 0x80 } }
        guard let newline = passed.lastIndex(of: UInt8(ascii: "\n")) else {
            return (position, start.line, start.column + columns(passed))
        }
        let lines = passed.count { $0 == UInt8(ascii: "\n") }
        return (position, start.line + lines, columns(passed[(newline + 1)...]) + 1)
    }

    private func fault(_ reason: String, at position: Int? = nil) -> ScenarioError {
        let (position, line, column) = place(of: position ?? self.position)
        let reason = hasEnded && position == text.count ? "\(reason), but the file ends" : reason
        let begin = line == start.line ? "" : "line \(start.line), broken at "
        return ScenarioError("\(begin)line \(line), column \(column)", reason)
    }
}
