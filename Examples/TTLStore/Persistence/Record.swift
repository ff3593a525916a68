/// Changes as bytes: a letter for the kind, then lengths and dates as little-endian numbers, then the key and the value.
enum Record {
    /// The bytes of a record that sets a key, before the key and the value.
    static let headOfSet = 17

    static func append(_ change: Store.Change, to bytes: inout [UInt8]) {
        switch change {
        case .set(let key, let value, let date):
            bytes.append(UInt8(ascii: "S"))
            append(UInt32(key.bytes.count), to: &bytes)
            append(UInt32(value.count), to: &bytes)
            append(Int64(date), to: &bytes)
            bytes += key.bytes
            bytes += value
        case .expire(let key, let date):
            bytes.append(UInt8(ascii: "E"))
            append(UInt32(key.bytes.count), to: &bytes)
            append(Int64(date), to: &bytes)
            bytes += key.bytes
        case .remove(let key):
            bytes.append(UInt8(ascii: "R"))
            append(UInt32(key.bytes.count), to: &bytes)
            bytes += key.bytes
        case .removeAll: bytes.append(UInt8(ascii: "A"))
        }
    }

    private static func append(_ number: some FixedWidthInteger, to bytes: inout [UInt8]) {
        withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
    }

    /// Calls the body with each change in the bytes.
    ///
    /// - Returns: `false` if the bytes are not changes, from some place on.
    static func read(_ bytes: UnsafeRawBufferPointer, _ body: (Store.Change) -> Void) -> Bool {
        var reader = Reader(bytes: bytes)
        while let kind: UInt8 = reader.number() {
            switch kind {
            case UInt8(ascii: "S"):
                guard let keySize: UInt32 = reader.number(), let valueSize: UInt32 = reader.number(),
                    let date: Int64 = reader.number(), let key = reader.take(keySize),
                    let value = reader.take(valueSize)
                else { return false }
                body(.set(Key(key), value: value, date: Int(date)))
            case UInt8(ascii: "E"):
                guard let keySize: UInt32 = reader.number(), let date: Int64 = reader.number(),
                    let key = reader.take(keySize)
                else { return false }
                body(.expire(Key(key), date: Int(date)))
            case UInt8(ascii: "R"):
                guard let keySize: UInt32 = reader.number(), let key = reader.take(keySize) else { return false }
                body(.remove(Key(key)))
            case UInt8(ascii: "A"): body(.removeAll)
            default: return false
            }
        }
        return true
    }

    private struct Reader {
        let bytes: UnsafeRawBufferPointer
        var position = 0

        mutating func number<Number: FixedWidthInteger & BitwiseCopyable>() -> Number? {
            let size = MemoryLayout<Number>.size
            guard bytes.count - position >= size else { return nil }
            defer { position += size }
            return Number(littleEndian: bytes.loadUnaligned(fromByteOffset: position, as: Number.self))
        }

        mutating func take(_ count: UInt32) -> [UInt8]? {
            guard bytes.count - position >= Int(count) else { return nil }
            defer { position += Int(count) }
            return [UInt8](bytes[position..<position + Int(count)])
        }
    }
}
