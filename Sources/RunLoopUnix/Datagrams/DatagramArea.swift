internal import RunLoopKit

/// The memory into which a batch of datagrams is received.
final class DatagramArea {
    private var memory: UnsafeMutableRawPointer
    private var capacity: Int
    private let slots = UnsafeMutableBufferPointer<DatagramSlot>.allocate(capacity: DatagramSlot.mostPerCall)
    /// The first received datagram that was not passed on yet, and the end of them.
    private var first = 0
    private var end = 0

    init(room: Int) {
        capacity = room
        memory = .allocate(byteCount: room * DatagramSlot.mostPerCall, alignment: 16)
        slots.initialize(repeating: DatagramSlot())
    }

    deinit {
        memory.deallocate()
        slots.deallocate()
    }

    /// Gives each datagram so much room.
    func setRoom(_ room: Int) {
        if room > capacity {
            memory.deallocate()
            memory = .allocate(byteCount: room * slots.count, alignment: 16)
            capacity = room
        }
        for index in slots.indices {
            slots[index].bytes = UnsafeMutableRawBufferPointer(start: memory + index * capacity, count: room)
        }
        (first, end) = (0, 0)
    }

    /// Receives up to so many datagrams.
    ///
    /// - Returns: how many, or -1 with a reason in `errno`.
    func receive(atMost count: Int, from descriptor: Int32, _ system: any SystemCalls) -> Int {
        let count = min(count, slots.count)
        let received = system.receive(descriptor, into: UnsafeMutableBufferPointer(rebasing: slots[..<count]))
        (first, end) = (0, max(0, received))
        return received
    }

    var isEmpty: Bool { first == end }

    /// The next datagram, whose bytes are valid until the next batch.
    func next() -> DatagramSlot? {
        guard first < end else { return nil }
        defer { first += 1 }
        return slots[first]
    }
}

/// The memory that the datagram sockets of a loop share: a socket holds an area only while it has datagrams that were
/// not passed on.
final class DatagramPool {
    static func shared(of loop: RunLoop) -> DatagramPool { loop[pools] }

    private static let pools = RunLoop.Local { _ in DatagramPool() }
    private static let most = 4

    /// The datagrams of a call that sends.
    let outgoing = UnsafeMutableBufferPointer<DatagramSlot>.allocate(capacity: DatagramSlot.mostPerCall)
    private var free: [DatagramArea] = []

    init() {
        outgoing.initialize(repeating: DatagramSlot())
    }

    deinit {
        outgoing.deallocate()
    }

    /// An area with so much room for each datagram. An area leaves the pool while a handler uses it, so that a nested run
    /// takes another one.
    func take(room: Int) -> DatagramArea {
        let area = free.popLast() ?? DatagramArea(room: room)
        area.setRoom(room)
        return area
    }

    func put(_ area: DatagramArea) {
        if free.count < Self.most { free.append(area) }
    }
}
