/// Datagrams that wait to be sent, in one piece of memory.
struct DatagramQueue {
    private struct Header {
        let count: Int
        let peer: Endpoint
    }

    private static let headerSize = MemoryLayout<Header>.size
    private let pool: BufferPool
    private var buffer: ByteBuffer?

    init(_ pool: BufferPool) {
        self.pool = pool
    }

    /// The number of bytes that a datagram takes in the queue.
    static func size(of bytes: UnsafeRawBufferPointer) -> Int { headerSize + bytes.count }

    var isEmpty: Bool { buffer == nil }

    /// - Parameter peer: the receiver; an empty address stands for the connected peer.
    mutating func append(_ bytes: UnsafeRawBufferPointer, to peer: Endpoint) {
        let buffer = buffer ?? pool.take()
        self.buffer = buffer
        withUnsafeBytes(of: Header(count: bytes.count, peer: peer)) { buffer.append($0) }
        buffer.append(bytes)
    }

    /// Describes the first datagrams, valid until the queue changes, and returns their number.
    func fill(_ slots: UnsafeMutableBufferPointer<DatagramSlot>) -> Int {
        guard let bytes = buffer?.bytes else { return 0 }
        var (offset, filled) = (0, 0)
        while filled < slots.count, offset < bytes.count {
            let header = header(at: offset, of: bytes)
            offset += Self.headerSize
            slots[filled].address = header.peer
            slots[filled].bytes = UnsafeMutableRawBufferPointer(
                mutating: UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + header.count]))
            offset += header.count
            filled += 1
        }
        return filled
    }

    private func header(at offset: Int, of bytes: UnsafeRawBufferPointer) -> Header {
        bytes.loadUnaligned(fromByteOffset: offset, as: Header.self)
    }

    /// - Returns: the bytes that the datagrams took.
    mutating func removeFirst(_ count: Int) -> Int {
        guard let buffer else { return 0 }
        var removed = 0
        for _ in 0..<count {
            let size = Self.headerSize + header(at: 0, of: buffer.bytes).count
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
