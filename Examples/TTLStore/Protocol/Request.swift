import Glibc

/// The words of a request, in the buffer where they arrived.
struct Request {
    let bytes: UnsafeBufferPointer<UInt8>
    let words: [Range<Int>]
    /// The number of words of the request.
    let count: Int

    subscript(index: Int) -> UnsafeBufferPointer<UInt8> { UnsafeBufferPointer(rebasing: bytes[words[index]]) }

    func key(_ index: Int) -> Key { Key(self[index]) }
    /// Returns the part of the table that contains a key.
    func part(_ index: Int) -> Int { Table.part(ofShard: Key.shard(of: UnsafeRawBufferPointer(self[index]))) }
    func value(_ index: Int) -> [UInt8] { [UInt8](self[index]) }
    func text(_ index: Int) -> String { String(decoding: self[index], as: UTF8.self) }
    func integer(_ index: Int) -> Int? { Int(wholeNumber: self[index]) }
    func name(_ index: Int) -> Name { Name(self[index]) }

    /// Returns the word as an error repeats it: truncated, and as a C string.
    func quoted(_ index: Int, _ most: Int = 128) -> UnsafeBufferPointer<UInt8>.SubSequence {
        self[index].prefix(most).prefix { $0 != 0 }
    }
}

/// The name of a command or an option, in any case, as two machine words, which are compared to distinguish names.
struct Name: Equatable {
    private(set) var head: UInt64 = 0
    private(set) var tail: UInt64 = 0

    /// The largest number of letters in a name.
    static let most = 16

    init() {}

    @inline(__always)
    init(_ letters: UnsafeBufferPointer<UInt8>) {
        for letter in letters.prefix(8) { head = head << 8 | Name.upper(letter) }
        guard letters.count > 8 else { return }
        for letter in letters[8...].prefix(9) { tail = tail << 8 | Name.upper(letter) }
        // No command is that long.
        if letters.count > Name.most { self = Name() }
    }

    @inline(__always)
    private static func upper(_ letter: UInt8) -> UInt64 {
        UInt64(letter &- 0x61 < 26 ? letter & ~0x20 : letter)
    }

    /// Lets a `switch` read like one over names.
    @inline(__always)
    static func ~= (name: StaticString, other: Name) -> Bool {
        other == Name(UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
    }
}

extension Int {
    /// Creates a whole number from the form that Redis accepts: digits, with or without a minus, and nothing
    /// superfluous.
    init?(wholeNumber word: UnsafeBufferPointer<UInt8>) {
        let digits = word.first == UInt8(ascii: "-") ? word.dropFirst() : word[...]
        guard let first = digits.first, word.count <= 20, digits.allSatisfy({ (0x30...0x39).contains($0) }) else {
            return nil
        }
        guard first != UInt8(ascii: "0") || word.count == 1 else { return nil }
        self.init(String(decoding: word, as: UTF8.self))
    }
}

extension Double {
    /// Creates a number as `strtod` reads it: also hexadecimal, or infinite.
    init?(number word: UnsafeBufferPointer<UInt8>) {
        guard let first = word.first, word.count < 5 * 1024, isspace(Int32(first)) == 0 else { return nil }
        let value: Double? = (word.map { CChar(bitPattern: $0) } + [0]).withUnsafeBufferPointer { text in
            errno = 0
            var end: UnsafeMutablePointer<CChar>?
            let value = strtod(text.baseAddress!, &end)
            let isOutOfRange = errno == ERANGE && (value.isInfinite || value == 0)
            return end! - UnsafeMutablePointer(mutating: text.baseAddress!) == word.count && !isOutOfRange ? value : nil
        }
        guard let value, !value.isNaN else { return nil }
        self = value
    }

    /// The decimal form of a finite number without an exponent: as short as possible, with at most 17 decimals.
    var decimals: String {
        let short = self == rounded() && abs(self) < 1e17 ? String(Int(self)) : description
        let fraction = short.drop { $0 != "." }.dropFirst()
        guard short.contains("e") || fraction.count > 17 else { return short }
        // The largest number has 309 digits.
        let all = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 512) { room in
            _ = withVaList([self]) { vsnprintf(room.baseAddress!, room.count, "%.17f", $0) }
            return String(cString: room.baseAddress!)
        }
        let trimmed = all.reversed().drop { $0 == "0" }.drop { $0 == "." }
        let text = String(trimmed.reversed())
        return text == "-0" ? "0" : text
    }
}
