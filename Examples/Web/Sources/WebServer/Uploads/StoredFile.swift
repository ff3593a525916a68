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

    /// Reads a piece at an offset.
    func read(at offset: Int) -> EventLoopFuture<ByteBuffer> {
        disk.run { [file, length] in
            try file.withContents { ByteBuffer(bytes: $0[offset..<min(length, offset + Self.piece)]) }
        }
    }
}
