internal import Glibc
internal import RunLoopCore
@_spi(Ports) internal import RunLoopUnix

/// One side of a pipe of simulated processes.
final class SimulatedPipe: OpenDescription {
    private let isReader: Bool
    /// The bytes written and not yet read, shared by both sides.
    private let bytes: PipeBytes
    /// The other side; `nil` if no descriptor refers to it.
    private weak var other: SimulatedPipe?

    private init(isReader: Bool, _ bytes: PipeBytes) {
        (self.isReader, self.bytes) = (isReader, bytes)
    }

    static func make() -> (reading: SimulatedPipe, writing: SimulatedPipe) {
        let bytes = PipeBytes()
        let (reading, writing) = (SimulatedPipe(isReader: true, bytes), SimulatedPipe(isReader: false, bytes))
        (reading.other, writing.other) = (writing, reading)
        return (reading, writing)
    }

    override func close() {
        other?.other = nil
        other?.tell()
    }

    override var readiness: DescriptorEvents? {
        if other == nil { return isReader ? .readable : .writable }
        if isReader { return bytes.count > 0 ? .readable : [] }
        return bytes.isFull ? [] : .writable
    }

    override var pollEvents: Int16 {
        guard other == nil else { return super.pollEvents }
        if isReader { return Int16(POLLHUP) | (bytes.count > 0 ? Int16(POLLIN) : 0) }
        return Int16(POLLERR) | (bytes.isFull ? 0 : Int16(POLLOUT))
    }

    override var access: Int32 { isReader ? O_RDONLY : O_WRONLY }
    override var inputCount: Int? { bytes.count }

    override func read(into room: UnsafeMutableRawBufferPointer) -> Int {
        guard isReader else { return failure(EBADF) }
        guard !room.isEmpty else { return 0 }
        guard bytes.count > 0 else { return other == nil ? 0 : failure(EAGAIN) }
        let wasFull = bytes.isFull
        let count = bytes.read(into: room)
        // The other side hears of a page that is free, not of each byte.
        if wasFull && !bytes.isFull { other?.tell(Int16(POLLOUT)) }
        return count
    }

    override func write(_ new: UnsafeRawBufferPointer) -> Int {
        guard !isReader else { return failure(EBADF) }
        guard !new.isEmpty else { return 0 }
        guard let other else { return failure(EPIPE) }
        let count = bytes.write(new)
        // The reader hears also of a write without room, as Linux has it.
        other.tell(Int16(POLLIN))
        return count > 0 ? count : failure(EAGAIN)
    }
}

/// The bytes of a pipe, in pages as Linux has them: a page is free again when all of its bytes have been read.
private final class PipeBytes {
    private static let pageSize = 4_096
    private static let mostPages = 16

    private let bytes = ByteBuffer(capacity: 64)
    /// The number of unread bytes in each page, and the free bytes of the last page.
    private var pages: [Int] = []
    private var room = 0

    var count: Int { bytes.count }
    var isFull: Bool { pages.count == Self.mostPages }

    /// Appends as many bytes as there is room for.
    func write(_ new: UnsafeRawBufferPointer) -> Int {
        var rest = new.count
        // The odd part goes to the last page if it has room for all of it.
        let odd = rest % Self.pageSize
        if let last = pages.indices.last, odd > 0, odd <= room {
            pages[last] += odd
            room -= odd
            rest -= odd
        }
        while rest > 0, !isFull {
            let part = min(rest, Self.pageSize)
            pages.append(part)
            room = Self.pageSize - part
            rest -= part
        }
        bytes.append(UnsafeRawBufferPointer(rebasing: new.prefix(new.count - rest)))
        return new.count - rest
    }

    func read(into memory: UnsafeMutableRawBufferPointer) -> Int {
        let count = min(memory.count, bytes.count)
        memory.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes.bytes.prefix(count)))
        bytes.discard(count)
        var rest = count
        while rest > 0 {
            let part = min(rest, pages[0])
            pages[0] -= part
            rest -= part
            if pages[0] == 0 { pages.removeFirst() }
        }
        return count
    }
}
