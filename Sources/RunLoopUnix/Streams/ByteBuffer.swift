internal import RunLoopKit

/// A queue of bytes in contiguous memory.
///
/// The memory starts uninitialized, because system calls fill it.
@_spi(Ports) public final class ByteBuffer {
    private var memory: UnsafeMutableRawPointer
    private(set) var capacity: Int
    private var start = 0
    private var end = 0
    /// The next buffer in a pool.
    fileprivate var next: ByteBuffer?

    /// Creates an empty buffer, which grows when bytes are appended.
    public init(capacity: Int) {
        memory = .allocate(byteCount: capacity, alignment: 1)
        self.capacity = capacity
    }

    deinit {
        memory.deallocate()
    }

    /// The number of bytes.
    public var count: Int { end - start }
    var isEmpty: Bool { start == end }

    /// The bytes, oldest first. Valid until the buffer changes.
    public var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: memory + start, count: end - start) }

    /// Returns whether `bytes` is exactly the buffer's content, in the same memory.
    @inline(__always)
    func holdsJust(_ bytes: UnsafeRawBufferPointer) -> Bool {
        bytes.baseAddress == UnsafeRawPointer(memory + start) && bytes.count == count
    }

    /// Removes bytes from the front.
    public func discard(_ count: Int) {
        assert(count >= 0 && count <= self.count, "more bytes are discarded than the buffer has")
        start += count
        if start == end { (start, end) = (0, 0) }
    }

    /// Copies bytes to the end, which must not be the buffer's own.
    public func append(_ bytes: UnsafeRawBufferPointer) {
        guard let source = bytes.baseAddress else { return }
        assert(source < memory || source >= memory + capacity, "a buffer was given bytes of its own memory")
        reserve(bytes.count)
        assert(bytes.count <= capacity - end, "bytes were added beyond the memory of a buffer")
        (memory + end).copyMemory(from: source, byteCount: bytes.count)
        end += bytes.count
    }

    /// Reads from a stream into the free memory at the end, with at least `room` and at most `limit` bytes.
    @inline(__always)
    func fill(room: Int, limit: Int = BufferPool.size, from stream: any ByteStream) -> StreamResult {
        reserve(room)
        let count = min(capacity - end, limit)
        let result = stream.read(into: UnsafeMutableRawBufferPointer(start: memory + end, count: count))
        assert(count > 0, "a buffer has no room for input")
        if case .done(let count) = result { end += count }
        assert(end <= capacity, "a stream has read more than there is room for")
        return result
    }

    @inline(__always)
    private func reserve(_ room: Int) {
        if capacity - end < room { grow(by: room) }
    }

    /// Makes room at the end by moving the bytes to the front, or into larger memory.
    ///
    /// Either way, half of the memory is free afterwards. A byte thus moves about once, and the memory is at most twice
    /// as large as its largest content.
    @inline(never)
    private func grow(by room: Int) {
        if capacity - count >= room && count <= capacity / 2 {
            memory.copyMemory(from: memory + start, byteCount: count)
        } else {
            let larger = 2 * (count + room)
            let moved = UnsafeMutableRawPointer.allocate(byteCount: larger, alignment: 1)
            moved.copyMemory(from: memory + start, byteCount: count)
            memory.deallocate()
            (memory, capacity) = (moved, larger)
        }
        (start, end) = (0, count)
        assert(capacity - end >= room, "a buffer has grown by too little")
    }

    func removeAll() {
        (start, end) = (0, 0)
    }
}

/// A pool of buffers for the connections of a loop, so that a connection without buffered bytes holds no memory.
///
/// A buffer leaves the pool while a handler uses it, so that a nested run takes another.
final class BufferPool {
    static func shared(of loop: RunLoop) -> BufferPool { loop[pools] }

    private static let pools = RunLoop.Local { _ in BufferPool() }

    /// The capacity of a buffer in bytes.
    static let size = 64 * 1024
    private static let most = 64
    /// The capacity in bytes of a large buffer, into which streaming connections read.
    static let largeSize = 256 * 1024

    // A list, because an array took 3 % of the instructions of a GET in TTLStore.
    private var free: ByteBuffer?
    private var count = 0
    private var large: ByteBuffer?

    @inline(__always)
    func take() -> ByteBuffer {
        guard let buffer = free.take() else { return ByteBuffer(capacity: BufferPool.size) }
        assert(buffer.isEmpty && count > 0, "a buffer in use is in the pool")
        free = buffer.next.take()
        count -= 1
        return buffer
    }

    func takeLarge() -> ByteBuffer { large.take() ?? ByteBuffer(capacity: BufferPool.largeSize) }

    /// Returns a buffer to the pool unless it has grown or the pool is full. One large buffer is enough, because a
    /// connection keeps it only while its peer does not accept the output.
    @inline(__always)
    func put(_ buffer: consuming ByteBuffer) {
        guard buffer.capacity == BufferPool.size, count < BufferPool.most else { return putLarge(buffer) }
        assert(buffer !== free && buffer.next == nil, "a buffer was put into the pool twice")
        buffer.removeAll()
        buffer.next = free.take()
        free = buffer
        count += 1
    }

    @inline(never)
    private func putLarge(_ buffer: consuming ByteBuffer) {
        guard buffer.capacity == BufferPool.largeSize else { return }
        assert(buffer !== large, "a buffer was put into the pool twice")
        buffer.removeAll()
        large = buffer
    }
}
