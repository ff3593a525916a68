/// A call that is to be made once, in memory of its timer queue: no object of its own, 56 bytes.
struct CallSlot {
    /// From when on the call may be made. Its entry is due later with a tolerance, and earlier if it was postponed.
    var date = RunLoop.Instant.distantFuture
    /// The lane in 16 bits and the order in 48.
    private var laneAndOrder: UInt64 = 0
    /// As a node's, in the highest 48 bits. The lowest byte is the place, the next one the label.
    private var flagsAndLaterOrder: UInt64 = 0
    /// Its index in its heap or among the calls set aside; the next free slot of its chunk, if this one is free.
    var index: Int32 = -1
    static let indexOfCalled: Int32 = -2
    private(set) var version: UInt32 = 0
    /// `nil` if the slot is free.
    var block: (() -> Void)?
    private(set) var origin = RunLoop.Origin()

    // Field by field: of a whole structure the compiler made a copy, with two locked instructions for the block.
    @inline(__always)
    mutating func fill(
        _ block: consuming @escaping () -> Void, _ label: CallLabel, _ origin: RunLoop.Origin, at date: RunLoop.Instant,
        lane: Int, order: UInt64
    ) {
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
        set { laneAndOrder = laneAndOrder & 0xffff | newValue << 16 }
    }

    @inline(__always)
    var laterOrder: UInt64 {
        get { flagsAndLaterOrder >> 16 }
        set { flagsAndLaterOrder = flagsAndLaterOrder & 0xffff | newValue << 16 }
    }

    @inline(__always)
    var place: TimerQueuePlace {
        get { TimerQueuePlace(bits: UInt8(truncatingIfNeeded: flagsAndLaterOrder)) }
        set { flagsAndLaterOrder = flagsAndLaterOrder & ~0xff | UInt64(newValue.rawValue) }
    }

    /// Whether the call is being made: the slot is in use, though nobody finds it.
    var isBeingCalled: Bool { block == nil && index == Self.indexOfCalled }

    /// The place in the order of a call that waits.
    var order: UInt64 { laterOrder != 0 ? laterOrder : queueOrder }
}

/// Names a slot and the call in it. Nothing is found by it once the call has been made or cancelled.
struct CallToken: Hashable, BitwiseCopyable {
    let slot: UInt32
    let version: UInt32

    var word: UInt64 { UInt64(slot) << 32 | UInt64(version) }

    /// Of a call that was never scheduled.
    static let none = CallToken(slot: .max, version: 0)
}
