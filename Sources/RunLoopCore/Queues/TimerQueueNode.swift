/// An item that can wait in a timer queue. The queue keeps it, and refers to it by references that are not counted.
protocol TimerQueueNode: AnyObject {
    /// The date on which the item is due, as last armed or postponed.
    var deadline: RunLoop.Instant { get }
    /// The earliest date on which it may be called, if its loop is awake anyway: its date, without its tolerance.
    var earliest: RunLoop.Instant { get }

    // The queue's fields are in no structure, so that they fill gaps between others: 8 bytes of each timer.

    var queuePlace: TimerQueuePlace { get set }
    /// Indicates whether the item may be called before its deadline, as the queue saw it when it was last armed.
    var hasTolerance: Bool { get set }
    /// Indicates whether the item will probably be armed again when it has been called.
    var isRepeating: Bool { get }
    /// The item's index in its place.
    var queueIndex: Int32 { get set }
    /// The item's position among equal deadlines.
    var queueOrder: UInt64 { get set }
    /// The position in the order that the item took when it was postponed; 0 if it was not.
    var laterOrder: UInt64 { get set }
    var queueLane: UInt16 { get set }
}

enum TimerQueuePlace: UInt8 {
    /// The node is not armed, and rests.
    case resting
    /// The node is armed, in the heap of its lane.
    case heap
    /// The node is armed, and set aside by a pass.
    case aside
    /// The node is being called: it is not armed, but still in the heap of its lane.
    case called

    static let mask: UInt8 = 3

    /// Creates a place from the lowest two bits.
    // Unsafe: the cases have exactly these values. The check was a call.
    @inline(__always)
    init(bits: UInt8) {
        self = unsafeBitCast(bits & Self.mask, to: TimerQueuePlace.self)
    }
}

extension TimerQueueNode {
    @inline(__always)
    func setPlace(_ place: TimerQueuePlace, _ index: Int) {
        assert(index >= 0 && index <= Int(Int32.max), "an index does not fit its bits")
        queuePlace = place
        queueIndex = Int32(truncatingIfNeeded: index)
    }

    @inline(__always)
    var lane: Int {
        get { Int(queueLane) }
        set {
            assert(newValue >= 0 && newValue <= Int(UInt16.max), "a lane does not fit its bits")
            queueLane = UInt16(truncatingIfNeeded: newValue)
        }
    }

    @inline(__always)
    func noteArmed(at deadline: RunLoop.Instant, _ order: UInt64) {
        assert(order != 0, "a node is armed without an order")
        queueOrder = order
        laterOrder = 0
        hasTolerance = earliest < deadline
    }

    @inline(__always)
    var isArmed: Bool { queuePlace == .heap || queuePlace == .aside }

    /// The position of an armed node in the order.
    @inline(__always)
    var order: UInt64 { laterOrder != 0 ? laterOrder : queueOrder }
}
