/// One event, as the ring holds it.
struct FlightEvent {
    enum Kind: UInt8 {
        case runBegan = 1, runEnded
        /// The number is the lateness of a timer, or the number of a task.
        case callBegan
        /// The innermost call has the number of its cause. The name is that of the thread that has posted it, if that is
        /// another one.
        case callHas
        case callEnded
        /// The number is how long the loop has slept. The name is that of the source or of the thread that woke it.
        case slept, sleptUntilDate, sleptUntilReady, sleptUntilMail
        /// A call that the innermost one has caused: its handler, and the number by which it is found.
        case caused
        /// Bytes of a connection: the received ones in the lower half of the number, the sent ones in the upper half, and its
        /// descriptor in the place of the mode.
        case moved
    }

    /// The number of a call that had no date.
    static let noLateness: Int64 = -1

    /// The time; the kind with the names and the depth; and a number that depends on the kind.
    let words: (UInt64, UInt64, UInt64)

    init(_ kind: Kind, at time: RunLoop.Instant, name: UInt32 = 0, mode: UInt16 = 0, depth: Int, value: Int64 = 0) {
        let depth = UInt64(truncatingIfNeeded: min(depth, 255))
        words = (
            UInt64(bitPattern: time.nanoseconds),
            UInt64(name) | UInt64(kind.rawValue) << 32 | depth << 40 | UInt64(mode) << 48, UInt64(bitPattern: value)
        )
    }

    init(words: (UInt64, UInt64, UInt64)) {
        self.words = words
    }

    var time: RunLoop.Instant { RunLoop.Instant(nanoseconds: Int64(bitPattern: words.0)) }
    var name: Int { Int(words.1 & 0xffff_ffff) }
    var kind: Kind? { Kind(rawValue: UInt8(truncatingIfNeeded: words.1 >> 32)) }
    var depth: Int { Int(words.1 >> 40 & 0xff) }
    var mode: Int { Int(words.1 >> 48) }
    var value: Int64 { Int64(bitPattern: words.2) }
    var received: Int { Int(words.2 & 0xffff_ffff) }
    var sent: Int { Int(words.2 >> 32) }
}
