/// A call to be made once, in memory of its timer queue: no object of its own, 56 bytes.
struct CallSlot {
    /// The earliest date of the call. Its entry is due later with a tolerance, and earlier if it was postponed.
    var date = RunLoop.Instant.distantFuture
    /// The lane in 16 bits and the order in 48.
    private var laneAndOrder: UInt64 = 0
    /// The order of a postponed call in the highest 48 bits, the place in the lowest byte, and the label in the next
    /// one.
    private var flagsAndLaterOrder: UInt64 = 0
    /// The index in the heap or among the calls set aside; in a free slot, the next free slot of the chunk.
    var index: Int32 = -1
    static let indexOfCalled: Int32 = -2
    private(set) var version: UInt32 = 0
    /// The closure to call; `nil` if the slot is free.
    var block: (() -> Void)?
    private(set) var origin = RunLoop.Origin()

    // Field by field: for a whole structure the compiler made a copy, with two locked instructions for the block.
    @inline(__always)
    mutating func fill(
        _ block: consuming @escaping () -> Void, _ label: CallLabel, _ origin: RunLoop.Origin, at date: RunLoop.Instant,
        lane: Int, order: UInt64
    ) {
        assert(self.block == nil && index != Self.indexOfCalled, "the slot of another call was filled")
        assert(0...0xffff ~= lane && order < 1 << 48, "a lane or an order does not fit its bits")
        self.block = consume block
        self.origin = origin
        self.date = date
        laneAndOrder = UInt64(truncatingIfNeeded: lane) | order << 16
        flagsAndLaterOrder = UInt64(TimerQueuePlace.heap.rawValue) | UInt64(label.id) << 8
        version = UInt32(truncatingIfNeeded: order)
    }

    @inline(__always) var lane: Int { Int(laneAndOrder & 0xffff) }
    @inline(__always) var label: CallLabel { CallLabel(id: UInt8(truncatingIfNeeded: flagsAndLaterOrder >> 8)) }

    @inline(__always)
    var queueOrder: UInt64 {
        get { laneAndOrder >> 16 }
        set {
            assert(newValue < 1 << 48, "an order does not fit its bits")
            laneAndOrder = laneAndOrder & 0xffff | newValue << 16
        }
    }

    @inline(__always)
    var laterOrder: UInt64 {
        get { flagsAndLaterOrder >> 16 }
        set {
            assert(newValue < 1 << 48, "an order does not fit its bits")
            flagsAndLaterOrder = flagsAndLaterOrder & 0xffff | newValue << 16
        }
    }

    @inline(__always)
    var place: TimerQueuePlace {
        get { TimerQueuePlace(bits: UInt8(truncatingIfNeeded: flagsAndLaterOrder)) }
        set { flagsAndLaterOrder = flagsAndLaterOrder & ~0xff | UInt64(newValue.rawValue) }
    }

    /// Indicates whether the call is being made: its slot is in use, but no token finds it.
    var isBeingCalled: Bool { block == nil && index == Self.indexOfCalled }

    /// The position of a waiting call in the order.
    var order: UInt64 { laterOrder != 0 ? laterOrder : queueOrder }
}

/// Identifies a slot and the call in it. Finds nothing once the call has been made or cancelled.
struct CallToken: Hashable, BitwiseCopyable {
    let slot: UInt32
    let version: UInt32

    var word: UInt64 { UInt64(slot) << 32 | UInt64(version) }

    /// The token of a call that was never scheduled.
    static let none = CallToken(slot: .max, version: 0)
}
