/// Encodes numbers and texts as bytes; numbers near zero are short.
struct ByteEncoder {
    private(set) var bytes: [UInt8] = []

    mutating func put(unsigned number: UInt64) {
        var rest = number
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(truncatingIfNeeded: rest))
    }

    mutating func put(_ number: Int) { put(unsigned: number.zigzag) }

    mutating func put(_ flag: Bool) { bytes.append(flag ? 1 : 0) }

    mutating func put(fixed number: UInt32) {
        for shift in stride(from: 0, to: 32, by: 8) { bytes.append(UInt8(truncatingIfNeeded: number >> UInt32(shift))) }
    }

    mutating func put(_ content: some Collection<UInt8>) {
        put(unsigned: UInt64(content.count))
        bytes += content
    }

    mutating func put(_ text: String) { put(text.utf8) }
}

/// A source of bytes, read one after another, and of the numbers that they encode.
protocol ByteSource {
    /// Returns the next byte; 0 past the end.
    mutating func byte() -> UInt8
}

extension ByteSource {
    mutating func unsigned() -> UInt64 {
        var (number, shift): (UInt64, UInt64) = (0, 0)
        while true {
            let byte = byte()
            number |= UInt64(byte & 0x7f) << shift
            shift += 7
            if byte < 0x80 || shift > 63 { return number }
        }
    }

    mutating func number() -> Int { Int(zigzag: unsigned()) }

    mutating func fixed() -> UInt32 {
        stride(from: UInt32(0), to: 32, by: 8).reduce(0) { $0 | UInt32(byte()) << $1 }
    }
}

/// Reads the bytes of a ``ByteEncoder``. Past the end ``isValid`` is `false`.
struct ByteDecoder: ByteSource {
    private var rest: ArraySlice<UInt8>
    private(set) var isValid = true

    init(_ bytes: [UInt8]) {
        rest = bytes[...]
    }

    mutating func byte() -> UInt8 {
        guard let byte = rest.popFirst() else {
            isValid = false
            return 0
        }
        return byte
    }

    mutating func int32() -> Int32 { Int32(clamping: number()) }
    mutating func flag() -> Bool { byte() != 0 }

    mutating func content() -> [UInt8] {
        let count = unsigned()
        guard count <= rest.count else {
            isValid = false
            return []
        }
        defer { rest = rest.dropFirst(Int(count)) }
        return Array(rest.prefix(Int(count)))
    }

    mutating func text() -> String { String(decoding: content(), as: UTF8.self) }
}

extension Int {
    /// The number without a sign, small if this one is near zero.
    var zigzag: UInt64 { UInt64(bitPattern: Int64(self << 1 ^ self >> 63)) }

    init(zigzag number: UInt64) {
        self = Int(Int64(bitPattern: number >> 1)) ^ -Int(number & 1)
    }
}
