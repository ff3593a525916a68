/// Checks that a text is JSON, and names the line and the column where it is not.
///
/// `JSONDecoder` cannot do this for us: on Linux its error has no position, it lets a trailing comma pass, and of a key
/// that is given twice it silently keeps one.
struct JSONSyntax {
    private static let deepest = 100

    private let text: [UInt8]
    private var position = 0
    private var depth = 0

    static func check(_ text: [UInt8]) throws(ScenarioError) {
        var syntax = JSONSyntax(text: text)
        try syntax.checkEncoding()
        syntax.skipSpace()
        try syntax.value()
        syntax.skipSpace()
        guard syntax.next == nil else { throw syntax.fault("expected nothing more after the value") }
    }

    private init(text: [UInt8]) {
        self.text = text
    }

    // MARK: Values

    private mutating func value() throws(ScenarioError) {
        depth += 1
        defer { depth -= 1 }
        guard depth <= Self.deepest else { throw fault("nested more than \(Self.deepest) levels deep") }
        switch next {
        case UInt8(ascii: "{"): try object()
        case UInt8(ascii: "["): try array()
        case UInt8(ascii: "\""): try string()
        case UInt8(ascii: "t"): try word("true")
        case UInt8(ascii: "f"): try word("false")
        case UInt8(ascii: "n"): try word("null")
        case .some(let byte) where "-0123456789".utf8.contains(byte): try number()
        default: throw fault("expected a value")
        }
    }

    private mutating func object() throws(ScenarioError) {
        var keys: Set<[UInt8]> = []
        position += 1
        skipSpace()
        if take("}") { return }
        repeat {
            skipSpace()
            guard next == UInt8(ascii: "\"") else { throw fault("expected a key in quotes") }
            let start = position
            try string()
            let key = text[start..<position]
            guard keys.insert(Array(key)).inserted else {
                throw fault("the key \(String(decoding: key, as: UTF8.self)) is given twice", at: start)
            }
            skipSpace()
            guard take(":") else { throw fault("expected ':' after the key") }
            skipSpace()
            try value()
            skipSpace()
        } while take(",")
        guard take("}") else { throw fault("expected ',' or '}' in the object") }
    }

    private mutating func array() throws(ScenarioError) {
        position += 1
        skipSpace()
        if take("]") { return }
        repeat {
            skipSpace()
            try value()
            skipSpace()
        } while take(",")
        guard take("]") else { throw fault("expected ',' or ']' in the array") }
    }

    private mutating func word(_ word: StaticString) throws(ScenarioError) {
        let start = position
        while let byte = next, UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte { position += 1 }
        guard text[start..<position].elementsEqual("\(word)".utf8) else { throw fault("expected a value", at: start) }
    }

    private mutating func number() throws(ScenarioError) {
        _ = take("-")
        if !take("0") { try digits() }
        if take(".") { try digits() }
        if take("e") || take("E") {
            _ = take("+") || take("-")
            try digits()
        }
    }

    private mutating func digits() throws(ScenarioError) {
        let start = position
        while let byte = next, UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte { position += 1 }
        guard position > start else { throw fault("expected a digit") }
    }

    // MARK: Strings

    private mutating func string() throws(ScenarioError) {
        position += 1
        while !take("\"") {
            guard let byte = next else { throw fault("expected '\"' at the end of the string") }
            guard byte >= 0x20 else { throw fault("a control character in a string must be escaped") }
            if byte == UInt8(ascii: "\\") {
                try escape()
            } else {
                position += 1
            }
        }
    }

    private mutating func escape() throws(ScenarioError) {
        let start = position
        position += 1
        guard take("u") else {
            guard let byte = next, "\"\\/bfnrt".utf8.contains(byte) else { throw fault("unknown escape", at: start) }
            position += 1
            return
        }
        let unit = try hexadecimal()
        guard 0xD800...0xDFFF ~= unit else { return }
        guard unit < 0xDC00, take("\\"), take("u"), 0xDC00...0xDFFF ~= (try hexadecimal()) else {
            throw fault("half of a surrogate pair", at: start)
        }
    }

    private mutating func hexadecimal() throws(ScenarioError) -> Int {
        var value = 0
        for _ in 0..<4 {
            guard let byte = next, let digit = Character(UnicodeScalar(byte)).hexDigitValue else {
                throw fault("expected four hexadecimal digits")
            }
            value = value << 4 | digit
            position += 1
        }
        return value
    }

    // MARK: Bytes

    private var next: UInt8? { position < text.count ? text[position] : nil }

    private mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard next == UInt8(ascii: character) else { return false }
        position += 1
        return true
    }

    private mutating func skipSpace() {
        while let byte = next, " \t\r\n".utf8.contains(byte) { position += 1 }
    }

    private func checkEncoding() throws(ScenarioError) {
        guard !text.isEmpty else { throw fault("the file is empty") }
        var decoder = Unicode.UTF8.ForwardParser()
        var bytes = text.makeIterator()
        var read = 0
        while true {
            switch decoder.parseScalar(from: &bytes) {
            case .valid(let scalar): read += scalar.count
            case .emptyInput: return
            case .error: throw fault("this is not UTF-8", at: read)
            }
        }
    }

    private func fault(_ reason: String, at position: Int? = nil) -> ScenarioError {
        let before = text[..<(position ?? self.position)]
        let line = before.count { $0 == UInt8(ascii: "\n") } + 1
        let start = before.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
        // A column is a character: the bytes that continue one do not count.
        let column = before[start...].count { $0 & 0xC0 != 0x80 } + 1
        let ended = (position ?? self.position) == text.count && !text.isEmpty
        return ScenarioError("line \(line), column \(column)", ended ? "\(reason), but the file ends" : reason)
    }
}
