/// CRC-32C, eight bytes at a time.
enum Checksum {
    /// - Parameter previous: the checksum of the preceding bytes, which this one continues.
    static func of(_ bytes: UnsafeRawBufferPointer, after previous: UInt32 = 0) -> UInt32 {
        tables.withUnsafeBufferPointer { table in
            var sum = ~previous
            var index = 0
            while bytes.count - index >= 8 {
                let word =
                    UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)) ^ UInt64(sum)
                sum = 0
                for place in 0..<8 {
                    let byte = Int(truncatingIfNeeded: word >> UInt64(8 * place) & 0xFF)
                    sum ^= table[(7 - place) << 8 | byte]
                }
                index += 8
            }
            while index < bytes.count {
                sum = table[Int((sum ^ UInt32(bytes[index])) & 0xFF)] ^ sum >> 8
                index += 1
            }
            return ~sum
        }
    }

    /// The effect of a byte on the checksum, by the number of bytes that follow it in the word: eight tables of 256.
    private static let tables: [UInt32] = {
        var tables: [UInt32] = []
        for byte in 0..<256 {
            var sum = UInt32(byte)
            for _ in 0..<8 { sum = sum & 1 == 1 ? sum >> 1 ^ 0x82F6_3B78 : sum >> 1 }
            tables.append(sum)
        }
        for index in 256..<8 * 256 {
            let before = tables[index - 256]
            tables.append(tables[Int(before & 0xFF)] ^ before >> 8)
        }
        return tables
    }()
}
