/// One event, as stored in the ring.
struct FlightEvent {
    enum Kind: UInt8 {
        case runBegan = 1, runEnded
        /// The number is the lateness of a timer, or the number of a task.
        case callBegan
        /// The number is the cause of the innermost call. The name is the thread that has posted it, if that is another
        /// one.
        case callHas
        case callEnded
        /// The number is the time that the loop has slept. The name is the source or the thread that woke it.
        case slept, sleptUntilDate, sleptUntilReady, sleptUntilMail
        /// The innermost call has caused a call: the name is its handler, and the number identifies it.
        case caused
        /// The number holds a connection's received bytes in its lower half and the sent ones in its upper half. The
        /// place of the mode holds its descriptor.
        case moved
    }

    /// The number for a call without a date.
    static let noLateness: Int64 = -1

    /// The time; the kind with the names and the depth; and a number that depends on the kind.
    let words: (UInt64, UInt64, UInt64)

    init(_ kind: Kind, at time: RunLoop.Instant, name: UInt32 = 0, mode: UInt16 = 0, depth: Int, value: Int64 = 0) {
        assert(depth >= 0, "more calls have ended than begun")
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
