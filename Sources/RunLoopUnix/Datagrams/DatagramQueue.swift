/// The route of a datagram to send.
struct DatagramRoute {
    /// The receiver; empty for the connected peer.
    let peer: Endpoint
    /// The source address; empty if the system chooses.
    let source: Endpoint
    /// The type of service; negative if left to the socket.
    let typeOfService: Int32

    init(to peer: Endpoint?, from source: Endpoint?, typeOfService: UInt8?) {
        (self.peer, self.source) = (peer ?? Endpoint(), source ?? Endpoint())
        self.typeOfService = typeOfService.map(Int32.init) ?? -1
    }
}

/// A queue of datagrams to send, in contiguous memory.
struct DatagramQueue {
    /// The lengths that precede the addresses and the bytes of a datagram.
    private struct Header {
        let count: Int
        let peerLength: Int16
        let sourceLength: Int16
        let typeOfService: Int32

        init(_ route: DatagramRoute, count: Int) {
            (self.count, typeOfService) = (count, route.typeOfService)
            (peerLength, sourceLength) = (Int16(route.peer.length), Int16(route.source.length))
        }

        var size: Int { MemoryLayout<Header>.size + Int(peerLength) + Int(sourceLength) + count }
    }

    private let pool: BufferPool
    private var buffer: ByteBuffer?

    init(_ pool: BufferPool) {
        self.pool = pool
    }

    /// Returns the number of bytes that a datagram takes in the queue.
    static func size(of bytes: UnsafeRawBufferPointer, on route: DatagramRoute) -> Int {
        Header(route, count: bytes.count).size
    }

    var isEmpty: Bool { buffer == nil }

    mutating func append(_ bytes: UnsafeRawBufferPointer, on route: DatagramRoute) {
        let buffer = buffer ?? pool.take()
        self.buffer = buffer
        withUnsafeBytes(of: Header(route, count: bytes.count)) { buffer.append($0) }
        route.peer.withSystemBytes { buffer.append($0) }
        route.source.withSystemBytes { buffer.append($0) }
        buffer.append(bytes)
    }

    /// Describes the first datagrams in slots, which are valid until the queue changes, and returns their number.
    func fill(_ slots: UnsafeMutableBufferPointer<DatagramSlot>) -> Int {
        guard var rest = buffer?.bytes else { return 0 }
        func take(_ count: Int) -> UnsafeRawBufferPointer {
            defer { rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(count)) }
            return UnsafeRawBufferPointer(rebasing: rest.prefix(count))
        }
        var filled = 0
        while filled < slots.count, !rest.isEmpty {
            let header = take(MemoryLayout<Header>.size).loadUnaligned(as: Header.self)
            slots[filled].address = Endpoint(copying: take(Int(header.peerLength)))
            slots[filled].localAddress = Endpoint(copying: take(Int(header.sourceLength)))
            slots[filled].typeOfService = header.typeOfService
            slots[filled].bytes = UnsafeMutableRawBufferPointer(mutating: take(header.count))
            assert(header.count >= 0 && slots[filled].bytes.count == header.count, "a datagram in the queue has no end")
            filled += 1
        }
        return filled
    }

    /// - Returns: the number of bytes that the datagrams took.
    mutating func removeFirst(_ count: Int) -> Int {
        guard let buffer else { return 0 }
        var removed = 0
        for _ in 0..<count {
            let size = buffer.bytes.loadUnaligned(as: Header.self).size
            assert(size <= buffer.count, "a datagram ends beyond the queue")
            buffer.discard(size)
            removed += size
        }
        if buffer.isEmpty { removeAll() }
        return removed
    }

    mutating func removeAll() {
        if let buffer { pool.put(buffer) }
        buffer = nil
    }
}
