/// A sum of all bytes of a tape, which shows whether any has changed.
struct TapeCheck {
    private(set) var value: UInt64 = 0xcbf2_9ce4_8422_2325

    /// - Parameter tape: the number of the tape, so that its chunks fit no other tape.
    init(ofTape tape: UInt32 = 0) { value ^= UInt64(tape) }

    @inline(__always)
    mutating func add(_ byte: UInt8) {
        value = (value ^ UInt64(byte)) &* 0x100_0000_01b3
    }

    /// Adds bytes, eight at a time.
    mutating func add(_ bytes: UnsafeRawBufferPointer) {
        var place = 0
        while place + 8 <= bytes.count {
            let word = bytes.loadUnaligned(fromByteOffset: place, as: UInt64.self)
            value = (value ^ word) &* 0x9e37_79b9_7f4a_7c15
            value ^= value >> 32
            place += 8
        }
        while place < bytes.count {
            add(bytes[place])
            place += 1
        }
    }

    /// The part of the sum that an event has.
    var short: UInt16 { UInt16(truncatingIfNeeded: value ^ value >> 16 ^ value >> 32 ^ value >> 48) }

    static func digest(_ bytes: UnsafeRawBufferPointer) -> UInt32 {
        var check = TapeCheck()
        check.add(bytes)
        return UInt32(truncatingIfNeeded: check.value ^ check.value >> 32)
    }
}
