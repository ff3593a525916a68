/// A key: any bytes.
struct Key: Hashable {
    let bytes: [UInt8]

    init(_ bytes: UnsafeBufferPointer<UInt8>) {
        self.bytes = [UInt8](bytes)
    }

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    // All bytes at once: the array would combine them one by one, which takes three times as long for 16 bytes.
    func hash(into hasher: inout Hasher) {
        bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
    }

    /// A number that the same key always has in this process, spread over all its bits.
    var spread: UInt64 {
        bytes.withUnsafeBytes { bytes in
            var state = Key.seed ^ UInt64(truncatingIfNeeded: bytes.count)
            var index = 0
            while bytes.count - index >= 8 {
                state = (state ^ bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)) &* Key.factor
                state ^= state >> 32
                index += 8
            }
            while index < bytes.count {
                state = (state ^ UInt64(bytes[index])) &* Key.factor
                index += 1
            }
            return state ^ state >> 32
        }
    }

    // Nobody outside knows it, so that nobody can choose keys that all lie in one place.
    private static let seed = UInt64.random(in: 0 ... .max)
    private static let factor: UInt64 = 0x9E37_79B9_7F4A_7C15
}
