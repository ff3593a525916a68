internal import Glibc
internal import RunLoopCore
@_spi(Ports) internal import RunLoopUnix

/// One side of a pipe of simulated processes.
final class SimulatedPipe: OpenDescription {
    private static let capacity = 65_536
    /// The number of bytes that are written at once or not at all.
    private static let atom = 4_096

    private let isReader: Bool
    /// The bytes written and not yet read, shared by both sides.
    private let bytes: ByteBuffer
    /// The other side; `nil` if no descriptor refers to it.
    private weak var other: SimulatedPipe?

    private init(isReader: Bool, _ bytes: ByteBuffer) {
        (self.isReader, self.bytes) = (isReader, bytes)
    }

    static func make() -> (reading: SimulatedPipe, writing: SimulatedPipe) {
        let bytes = ByteBuffer(capacity: 64)
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
        return Self.capacity - bytes.count >= Self.atom ? .writable : []
    }

    override var pollEvents: Int16 {
        guard other == nil else { return super.pollEvents }
        if isReader { return Int16(POLLHUP) | (bytes.count > 0 ? Int16(POLLIN) : 0) }
        return Int16(POLLOUT | POLLERR)
    }

    override func read(into room: UnsafeMutableRawBufferPointer) -> Int {
        guard isReader else { return failure(EBADF) }
        let count = min(room.count, bytes.count)
        guard count > 0 else { return other == nil || room.isEmpty ? 0 : failure(EAGAIN) }
        room.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes.bytes.prefix(count)))
        bytes.discard(count)
        other?.tell()
        return count
    }

    override func write(_ new: UnsafeRawBufferPointer) -> Int {
        guard !isReader else { return failure(EBADF) }
        guard let other else { return failure(EPIPE) }
        let room = Self.capacity - bytes.count
        let count = new.count <= Self.atom && new.count > room ? 0 : min(room, new.count)
        guard count > 0 else { return new.isEmpty ? 0 : failure(EAGAIN) }
        bytes.append(UnsafeRawBufferPointer(rebasing: new.prefix(count)))
        other.tell()
        return count
    }
}
