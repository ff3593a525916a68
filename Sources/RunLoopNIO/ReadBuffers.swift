#if Adapters
internal import NIOCore
internal import RunLoopUnix

/// The memory into which the channels of an event loop read, one after the other.
///
/// It is still in the processor's cache when the next channel reads, and a channel that waits keeps none.
final class ReadBuffers {
    // Memory of its own, because an array asks at each change whether it is shared. Together with the indices that are
    // set in place of `clear()`, this saves 109 instructions for each message.
    // Exclusive access is not checked: only the loop's thread reads, and a stream calls nobody meanwhile.
    private let buffers: UnsafeMutableBufferPointer<NIOCore.ByteBuffer> = .allocate(capacity: kinds * mostOfKind)
    @exclusivity(unchecked) private var nextToReplace = 0

    // Capacities are powers of two, from 2 to 64 KiB: handlers that keep little input keep little memory.
    private static let smallest = 11
    private static let kinds = 6
    /// Handlers may keep some of the buffers of a capacity.
    private static let mostOfKind = 4

    init() {
        buffers.initialize(repeating: NIOCore.ByteBuffer())
    }

    deinit {
        buffers.deinitialize()
        buffers.deallocate()
    }

    /// Reads into a buffer that nobody else has.
    ///
    /// - Parameter expected: the size of the expected input. It does not fill the buffer, because only another call would
    ///   show that nothing follows.
    func read(_ expected: Int, from stream: any ByteStream) -> (NIOCore.ByteBuffer, StreamResult) {
        let exponent = Int.bitWidth - expected.leadingZeroBitCount
        let kind = min(max(0, exponent - Self.smallest), Self.kinds - 1)
        let first = kind * Self.mostOfKind
        for place in first..<first + Self.mostOfKind {
            let result = buffers[place].modifyIfUniquelyOwned { buffer in
                buffer.moveReaderIndex(to: 0)
                buffer.moveWriterIndex(to: 0)
                return buffer.read(from: stream)
            }
            if let result { return (buffers[place], result) }
        }
        let place = first + nextToReplace
        nextToReplace = (nextToReplace + 1) % Self.mostOfKind
        buffers[place] = ByteBufferAllocator().buffer(capacity: 1 << (kind + Self.smallest))
        let result = buffers[place].read(from: stream)
        return (buffers[place], result)
    }
}

/// The buffers of a channel whose program has chosen an allocator.
// A class, because the question whether a channel has a pool copies the pool: 110 instructions for each message.
final class OwnBuffers {
    @exclusivity(unchecked) private var pool: NIOPooledRecvBufferAllocator

    init(capacity: UInt, _ allocator: any RecvByteBufferAllocator) {
        pool = NIOPooledRecvBufferAllocator(capacity: Int(clamping: capacity), recvAllocator: allocator)
    }

    var allocator: any RecvByteBufferAllocator { pool.recvAllocator }

    func setCapacity(to capacity: UInt) { pool.updateCapacity(to: Int(clamping: capacity)) }

    func read(from stream: any ByteStream, _ allocator: ByteBufferAllocator) -> (NIOCore.ByteBuffer, StreamResult) {
        let (buffer, result) = pool.buffer(allocator: allocator) { $0.read(from: stream) }
        if case .done(let count) = result { pool.record(actualReadBytes: count) }
        return (buffer, result)
    }
}

extension NIOCore.ByteBuffer {
    /// Reads into the free part of the buffer.
    mutating func read(from stream: any ByteStream) -> StreamResult {
        var result = StreamResult.mustWait
        _ = writeWithUnsafeMutableBytes(minimumWritableBytes: 1) { room in
            result = stream.read(into: room)
            if case .done(let count) = result { return count }
            return 0
        }
        return result
    }
}
#endif
