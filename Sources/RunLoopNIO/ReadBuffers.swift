#if Adapters
internal import NIOCore
@_spi(Ports) internal import RunLoopUnix

/// The buffers into which the channels of an event loop read, one after another.
///
/// The memory is still in the processor's cache when the next channel reads, and a waiting channel keeps none.
final class ReadBuffers {
    // Allocated directly, because an array checks at each change whether it is shared. Together with setting the
    // indices instead of calling `clear()`, this saves 109 instructions per message.
    private let buffers: UnsafeMutableBufferPointer<NIOCore.ByteBuffer> = .allocate(capacity: kinds * mostOfKind)
    private var nextToReplace = 0

    // Capacities are powers of two, from 2 to 64 KiB, so that handlers that keep little input keep little memory.
    private static let smallest = 11
    private static let kinds = 6
    /// The number of buffers of each capacity, because handlers may keep some.
    private static let mostOfKind = 4

    init() {
        buffers.initialize(repeating: NIOCore.ByteBuffer())
    }

    deinit {
        buffers.deinitialize()
        buffers.deallocate()
    }

    /// Reads into a buffer that is not shared.
    ///
    /// - Parameter expected: the size of the expected input. The buffer is larger, because after a full read only
    ///   another call would show that nothing follows.
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
// A class, because testing an optional for a pool copies the pool, which costs 110 instructions per message.
final class OwnBuffers {
    private var pool: NIOPooledRecvBufferAllocator

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
