internal import NIOCore
internal import RunLoopUnix

/// An uploaded file that is sent piece by piece.
struct StoredFile: Sendable {
    let length: Int
    private let file: File
    private let disk: DiskQueue

    private static let piece = 64 * 1024

    init(_ file: File, length: Int, _ disk: DiskQueue) {
        (self.file, self.length, self.disk) = (file, length, disk)
    }

    /// Reads a piece at an offset. The future fails if the file has become shorter.
    func read(at offset: Int) -> EventLoopFuture<ByteBuffer> {
        disk.run { [file, length] in
            let count = min(length - offset, Self.piece)
            let bytes = try file.read(count, at: offset)
            guard bytes.count == count else { throw Shortened() }
            return ByteBuffer(bytes: bytes)
        }
    }

    private struct Shortened: Error {}
}
