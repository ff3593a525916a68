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

    // All bytes at once: the array would compare and combine them one by one, which takes three times as long for 16
    // bytes.
    func hash(into hasher: inout Hasher) {
        bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
    }

    static func == (left: Key, right: Key) -> Bool {
        left.bytes.withUnsafeBytes { left in
            right.bytes.withUnsafeBytes {
                left.count == $0.count && (left.isEmpty || memcmp(left.baseAddress!, $0.baseAddress!, left.count) == 0)
            }
        }
    }

    /// A number that the same key always has in this process, spread over all its bits.
    var spread: UInt64 {
        bytes.withUnsafeBytes { bytes in
            var state = Key.mix(Key.seed.0, UInt64(truncatingIfNeeded: bytes.count))
            var index = 0
            while bytes.count - index >= 8 {
                state = Key.mix(state, bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self))
                index += 8
            }
            while index < bytes.count {
                state = Key.mix(state, UInt64(bytes[index]))
                index += 1
            }
            return state
        }
    }

    /// Both halves of the product: the lower one alone lets two words be chosen that undo each other.
    @inline(__always)
    private static func mix(_ state: UInt64, _ word: UInt64) -> UInt64 {
        let product = (state ^ word).multipliedFullWidth(by: Key.seed.1)
        return product.high ^ product.low
    }

    // Nobody outside knows it, so that keys that all lie in one place cannot be prepared.
    private static let seed = (UInt64.random(in: 0 ... .max), UInt64.random(in: 0 ... .max) | 1)
}
