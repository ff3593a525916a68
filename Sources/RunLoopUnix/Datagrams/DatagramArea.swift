internal import RunLoopKit

/// The memory for a batch of received datagrams.
final class DatagramArea {
    private var memory = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    private let slots = UnsafeMutableBufferPointer<DatagramSlot>.allocate(capacity: DatagramSlot.mostPerCall)
    /// The slots of received datagrams that have not been passed on.
    private var received = 0..<0
    /// The offset of the next datagram in the first slot.
    private var offset = 0

    init() {
        slots.initialize(repeating: DatagramSlot())
    }

    deinit {
        memory.deallocate()
        slots.deallocate()
    }

    func setRoom(_ room: Int) {
        assert(room > 0 && isEmpty, "datagrams are overwritten, or have no room")
        if room * slots.count > memory.count {
            memory.deallocate()
            memory = .allocate(byteCount: room * slots.count, alignment: 16)
        }
        for index in slots.indices {
            slots[index].bytes = UnsafeMutableRawBufferPointer(rebasing: memory[index * room..<(index + 1) * room])
        }
        (received, offset) = (0..<0, 0)
    }

    /// - Returns: the number of filled slots, or -1 with a reason in `errno`.
    func receive(atMost count: Int, from descriptor: Int32, withFacts: Bool, _ system: any SystemCalls) -> Int {
        assert(isEmpty, "datagrams that were not passed on are overwritten")
        let slots = UnsafeMutableBufferPointer(rebasing: slots[..<count])
        let count = system.receive(descriptor, into: slots, withFacts: withFacts)
        assert(count <= slots.count, "the system has filled more slots than there are")
        received = 0..<max(0, count)
        return count
    }

    var isEmpty: Bool { received.isEmpty }

    /// Returns the next datagram, whose bytes are valid until the next batch.
    func next() -> DatagramSlot? {
        guard let first = received.first else { return nil }
        let (all, segment) = (slots[first].length, slots[first].segment(at: offset))
        offset += segment.length
        assert(offset <= all, "a segment ends beyond its datagrams")
        if offset >= all { (received, offset) = (received.dropFirst(), 0) }
        return segment
    }
}

/// The memory that the datagram sockets of a loop share. A socket holds an area only while it has datagrams to pass on.
final class DatagramPool {
    static func shared(of loop: RunLoop) -> DatagramPool { loop[pools] }

    private static let pools = RunLoop.Local { _ in DatagramPool() }
    private static let most = 4

    /// The slots for a call that sends.
    let outgoing = UnsafeMutableBufferPointer<DatagramSlot>.allocate(capacity: DatagramSlot.mostPerCall)
    private var free: [DatagramArea] = []

    init() {
        outgoing.initialize(repeating: DatagramSlot())
    }

    deinit {
        outgoing.deallocate()
    }

    /// Returns an area with `room` bytes for each datagram. An area leaves the pool while a handler uses it, so that a
    /// nested run takes another.
    func take(room: Int) -> DatagramArea {
        let area = free.popLast() ?? DatagramArea()
        area.setRoom(room)
        return area
    }

    func put(_ area: DatagramArea) {
        assert(area.isEmpty, "an area with datagrams was put into the pool")
        assert(!free.contains { $0 === area }, "an area was put into the pool twice")
        if free.count < Self.most { free.append(area) }
    }
}
