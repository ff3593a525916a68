/// An entry of a timer queue: a node, or a call in a slot of the queue's own. The reference is not counted.
struct TimerReference<Node: TimerQueueNode>: BitwiseCopyable {
    // The address of a node, or the address of a slot plus one: heap entries stay as small as with a single kind.
    private let word: UInt

    @inline(__always)
    init(_ node: UnownedReference<Node>) {
        word = UInt(bitPattern: node.address)
        assert(word & 1 == 0, "the address of an object is odd")
    }

    @inline(__always)
    init(_ call: CallTable.Reference) {
        word = UInt(bitPattern: call) | 1
    }

    @inline(__always) private var isCall: Bool { word & 1 != 0 }

    /// The slot; `nil` for a node.
    @inline(__always)
    var call: CallTable.Reference? { isCall ? slot : nil }

    @inline(__always)
    private var slot: CallTable.Reference {
        assert(isCall, "a node was taken for a call")
        return CallTable.Reference(bitPattern: word & ~1).unsafelyUnwrapped
    }

    /// The node, if the entry is not a call.
    @inline(__always)
    var node: UnownedReference<Node> {
        assert(!isCall, "a call was taken for a node")
        return UnownedReference(address: UnsafeRawPointer(bitPattern: word).unsafelyUnwrapped)
    }

    var address: UnsafeRawPointer { UnsafeRawPointer(bitPattern: word).unsafelyUnwrapped }

    // MARK: Properties of both, as in a node

    @inline(__always)
    func setPlace(_ place: TimerQueuePlace) {
        if isCall { slot.pointee.place = place } else { node.with { $0.queuePlace = place } }
    }

    @inline(__always)
    func setIndex(_ index: Int) {
        let index = Int32(truncatingIfNeeded: index)
        if isCall { slot.pointee.index = index } else { node.with { $0.queueIndex = index } }
    }

    @inline(__always)
    var position: (place: TimerQueuePlace, index: Int, lane: Int) {
        if isCall { return (slot.pointee.place, Int(slot.pointee.index), slot.pointee.lane) }
        return node.with { ($0.queuePlace, Int($0.queueIndex), $0.lane) }
    }

    @inline(__always)
    var lane: Int { isCall ? slot.pointee.lane : node.with { $0.lane } }

    @inline(__always)
    var queueOrder: UInt64 { isCall ? slot.pointee.queueOrder : node.with { $0.queueOrder } }

    @inline(__always)
    var laterOrder: UInt64 { isCall ? slot.pointee.laterOrder : node.with { $0.laterOrder } }

    var order: UInt64 { isCall ? slot.pointee.order : node.with { $0.order } }

    @inline(__always)
    var earliest: RunLoop.Instant { isCall ? slot.pointee.date : node.with { $0.earliest } }

    /// Returns whether the item may be called at `now`, before its deadline.
    @inline(__always)
    func mayComeEarly(at now: RunLoop.Instant) -> Bool {
        isCall ? slot.pointee.date <= now : node.with { $0.hasTolerance && $0.earliest <= now }
    }

    @inline(__always)
    var isRepeating: Bool { !isCall && node.with { $0.isRepeating } }

    /// Notes that the item waits for `deadline` in its heap.
    @inline(__always)
    func noteArmed(at deadline: RunLoop.Instant, _ order: UInt64) {
        guard isCall else { return node.with { $0.noteArmed(at: deadline, order) } }
        slot.pointee.queueOrder = order
        slot.pointee.laterOrder = 0
    }

    /// Returns the deadline to which the item was postponed, and notes that the item now waits for it.
    func settle() -> RunLoop.Instant {
        assert(laterOrder != 0, "an item is settled that was not postponed")
        let deadline = isCall ? slot.pointee.date : node.with { $0.deadline }
        noteArmed(at: deadline, laterOrder)
        return deadline
    }

    /// Indicates whether the item waits: in its heap, or set aside.
    var isArmed: Bool { isCall ? slot.pointee.block != nil : node.with { $0.isArmed } }

    /// The date on which the item is due, as last armed or postponed; a call's without its tolerance.
    var date: RunLoop.Instant { isCall ? slot.pointee.date : node.with { $0.deadline } }

    /// Returns whether an entry of the item may be in its heap at `deadline`.
    func fits(_ deadline: RunLoop.Instant) -> Bool {
        if laterOrder != 0 { return deadline <= date }
        return isCall ? deadline >= date : deadline == date
    }
}
