/// Identifies a source to the driver. The version distinguishes the present tenant of a slot from earlier ones.
@_spi(Ports) public struct SourceToken: Hashable, Sendable {
    public let slot: UInt32
    /// The number of earlier sources in the slot.
    public let version: UInt32

    /// Creates a token from its numbers.
    public init(slot: UInt32, version: UInt32) {
        self.slot = slot
        self.version = version
    }
}

/// The descriptors found ready and not yet served, oldest first. The queue belongs to the loop and only ever pops, so a
/// nested run serves descriptors that the outer run has collected.
@_spi(Ports) public final class ReadyQueue {
    private typealias Entry = (token: SourceToken, events: DescriptorEvents)

    // Memory of its own, because an array that is a property of a class checks at each change whether it is shared:
    // most of the 45 instructions of an `append`.
    private var entries = UnsafeMutablePointer<Entry>.allocate(capacity: 16)
    private var capacity = 16
    // Not checked for exclusive access: only the loop's thread reaches these, and no access is open while anything else
    // is called.
    @exclusivity(unchecked) private var head = 0
    @exclusivity(unchecked) private var end = 0

    /// Creates an empty queue.
    public init() {}

    deinit {
        entries.deallocate()
    }

    /// A Boolean value that indicates whether no descriptor waits.
    public var isEmpty: Bool { head == end }
    /// The number of ready descriptors.
    public var count: Int { end - head }

    /// The entry at the given offset from the front.
    public subscript(index: Int) -> (token: SourceToken, events: DescriptorEvents) {
        assert(index >= 0 && index < count, "the queue of ready descriptors was read beyond its end")
        return entries[head + index]
    }

    /// Appends a ready descriptor. O(1).
    public func append(_ token: SourceToken, _ events: DescriptorEvents) {
        if end == capacity { makeRoom() }
        assert(end < capacity, "a descriptor was added beyond the memory of the queue")
        (entries + end).initialize(to: (token, events))
        end &+= 1
    }

    @inline(never)
    private func makeRoom() {
        assert(end == capacity, "the queue of ready descriptors has room")
        let more = UnsafeMutablePointer<Entry>.allocate(capacity: 2 * capacity)
        more.moveInitialize(from: entries, count: end)
        entries.deallocate()
        (entries, capacity) = (more, 2 * capacity)
    }

    /// Sorts the waiting entries by an order, without changing the order of equal ones.
    func sort(by order: (SourceToken) -> Int) {
        guard count > 1 else { return }
        let waiting = (head..<end).map { (order: order(entries[$0].token), entry: entries[$0]) }
        for (index, next) in waiting.ordered(by: { $0.order < $1.order }).enumerated() {
            entries[head + index] = next.entry
        }
    }

    /// Removes and returns the first ready descriptor; `nil` if there is none. O(1).
    public func popFirst() -> (token: SourceToken, events: DescriptorEvents)? {
        guard head < end else { return nil }
        assert(end <= capacity, "the queue of ready descriptors ends beyond its memory")
        let entry = entries[head]
        head &+= 1
        if head == end { (head, end) = (0, 0) }
        return entry
    }
}
