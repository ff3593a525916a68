/// An item that can wait in a timer queue, which keeps it, and refers to it by references that are not counted.
protocol TimerQueueNode: AnyObject {
    /// When it is due, as it was last armed or postponed.
    var deadline: RunLoop.Instant { get }
    /// From when on it may be called if its loop is awake anyway: its date, without its tolerance.
    var earliest: RunLoop.Instant { get }

    // The queue's fields, which are in no structure, so that they fill gaps between others: 8 bytes of each timer.

    var queuePlace: TimerQueuePlace { get set }
    /// Whether it may be called before its deadline, as the queue saw it when it was last armed.
    var hasTolerance: Bool { get set }
    /// Whether it will probably be armed again when it has been called.
    var isRepeating: Bool { get }
    /// Where it is there.
    var queueIndex: Int32 { get set }
    /// Its place among equal deadlines.
    var queueOrder: UInt64 { get set }
    /// The place in the order that it took when it was postponed; 0 if it was not.
    var laterOrder: UInt64 { get set }
    var queueLane: UInt16 { get set }
}

/// Where in a timer queue a node is.
enum TimerQueuePlace: UInt8 {
    /// Not armed, among those that rest.
    case resting
    /// Armed, in the heap of its lane.
    case heap
    /// Armed, among those that a pass has set aside.
    case aside
    /// Not armed, because it is being called, but still in the heap of its lane.
    case called

    static let mask: UInt8 = 3

    /// From the lowest two bits.
    // Unsafe: there are as many cases, with these values. The check was a call.
    @inline(__always)
    init(bits: UInt8) {
        self = unsafeBitCast(bits & Self.mask, to: TimerQueuePlace.self)
    }
}

extension TimerQueueNode {
    @inline(__always)
    func setPlace(_ place: TimerQueuePlace, _ index: Int) {
        queuePlace = place
        queueIndex = Int32(truncatingIfNeeded: index)
    }

    @inline(__always)
    var lane: Int {
        get { Int(queueLane) }
        set { queueLane = UInt16(truncatingIfNeeded: newValue) }
    }

    @inline(__always)
    func noteArmed(at deadline: RunLoop.Instant, _ order: UInt64) {
        queueOrder = order
        laterOrder = 0
        hasTolerance = earliest < deadline
    }

    @inline(__always)
    var isArmed: Bool { queuePlace == .heap || queuePlace == .aside }

    /// The place in the order of an armed node.
    @inline(__always)
    var order: UInt64 { laterOrder != 0 ? laterOrder : queueOrder }
}
