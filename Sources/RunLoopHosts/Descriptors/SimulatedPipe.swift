internal import Glibc
internal import RunLoopCore
internal import RunLoopUnix

/// The bytes of a pipe that were written and not yet read.
final class SimulatedPipe {
    fileprivate static let capacity = 65_536
    /// The number of bytes that are written at once or not at all.
    fileprivate static let atom = 4_096

    fileprivate let bytes = ByteBuffer(capacity: 64)
    fileprivate private(set) weak var reader: PipeSide?
    fileprivate private(set) weak var writer: PipeSide?

    /// Makes a pipe, as its reading and its writing side.
    static func make() -> (reading: PipeSide, writing: PipeSide) {
        let pipe = SimulatedPipe()
        let (reading, writing) = (PipeSide(pipe), PipeSide(pipe))
        (pipe.reader, pipe.writer) = (reading, writing)
        return (reading, writing)
    }
}

/// One side of a pipe.
final class PipeSide: OpenDescription {
    private let pipe: SimulatedPipe
    /// Whether any descriptor refers to it.
    private var isOpen = true

    fileprivate init(_ pipe: SimulatedPipe) {
        self.pipe = pipe
    }

    private var isReader: Bool { pipe.reader === self }
    private var other: PipeSide? {
        guard let other = isReader ? pipe.writer : pipe.reader, other.isOpen else { return nil }
        return other
    }

    override var isPollable: Bool { true }

    override var readiness: DescriptorEvents {
        if other == nil { return isReader ? .readable : .writable }
        if isReader { return pipe.bytes.count > 0 ? .readable : [] }
        return SimulatedPipe.capacity - pipe.bytes.count >= SimulatedPipe.atom ? .writable : []
    }

    override func read(into room: UnsafeMutableRawBufferPointer) -> Int {
        guard isReader else { return failure(EBADF) }
        let count = min(room.count, pipe.bytes.count)
        guard count > 0 else { return other == nil || room.isEmpty ? 0 : failure(EAGAIN) }
        room.copyMemory(from: UnsafeRawBufferPointer(rebasing: pipe.bytes.bytes.prefix(count)))
        pipe.bytes.discard(count)
        other?.tell()
        return count
    }

    override func write(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard !isReader else { return failure(EBADF) }
        guard let other else { return failure(EPIPE) }
        let room = SimulatedPipe.capacity - pipe.bytes.count
        let count = bytes.count <= SimulatedPipe.atom && bytes.count > room ? 0 : min(room, bytes.count)
        guard count > 0 else { return bytes.isEmpty ? 0 : failure(EAGAIN) }
        pipe.bytes.append(UnsafeRawBufferPointer(rebasing: bytes.prefix(count)))
        other.tell()
        return count
    }

    override func close() {
        isOpen = false
        other?.tell()
    }
}
