import Glibc

/// A key: any bytes.
struct Key: Hashable {
    let bytes: [UInt8]

    init(_ bytes: UnsafeBufferPointer<UInt8>) {
        self.bytes = [UInt8](bytes)
    }

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    // One word, over which all bytes are spread already: hashing the bytes takes longer.
    func hash(into hasher: inout Hasher) {
        hasher.combine(bytes.withUnsafeBytes(Key.spread))
    }

    static func == (left: Key, right: Key) -> Bool {
        left.bytes.withUnsafeBytes { left in
            right.bytes.withUnsafeBytes {
                left.count == $0.count && (left.isEmpty || memcmp(left.baseAddress!, $0.baseAddress!, left.count) == 0)
            }
        }
    }

    /// The shard of the key, constant while the process runs.
    var shard: Int { bytes.withUnsafeBytes(Key.shard) }

    /// Returns the shard of a key that consists of these bytes.
    static func shard(of bytes: UnsafeRawBufferPointer) -> Int { Int(spread(of: bytes) >> 52) }

    /// Returns a number, spread over all its bits, that equal bytes always have in this process.
    static func spread(of bytes: UnsafeRawBufferPointer) -> UInt64 {
        let count = bytes.count
        var state = mix(seed.0, UInt64(truncatingIfNeeded: count))
        var index = 0
        while count - index > 8 {
            state = mix(state, bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self))
            index += 8
        }
        return mix(state, lastWord(of: bytes))
    }

    /// Returns the last eight bytes, or all of fewer.
    @inline(__always)
    private static func lastWord(of bytes: UnsafeRawBufferPointer) -> UInt64 {
        let count = bytes.count
        if count >= 8 { return bytes.loadUnaligned(fromByteOffset: count - 8, as: UInt64.self) }
        if count >= 4 {
            let first = bytes.loadUnaligned(as: UInt32.self)
            return UInt64(first) | UInt64(bytes.loadUnaligned(fromByteOffset: count - 4, as: UInt32.self)) << 32
        }
        guard count > 0 else { return 0 }
        return UInt64(bytes[0]) | UInt64(bytes[count / 2]) << 8 | UInt64(bytes[count - 1]) << 16
    }

    /// Mixes a word into the state, with both halves of the product: with the lower one alone, two words could be
    /// chosen that cancel each other.
    @inline(__always)
    private static func mix(_ state: UInt64, _ word: UInt64) -> UInt64 {
        let product = (state ^ word).multipliedFullWidth(by: Key.seed.1)
        return product.high ^ product.low
    }

    // Unknown outside the process, so that an attacker cannot prepare keys that all collide.
    private static let seed = (UInt64.random(in: 0 ... .max), UInt64.random(in: 0 ... .max) | 1)
}
