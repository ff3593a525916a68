internal import NIOCore
internal import NIOHTTP1
internal import RunLoopUnix

/// Writes the body of a request to the disk, and names the file when it is complete and safe.
final class Upload: Responder {
    let mostBytes: (count: Int, limit: Refusal.Limit)
    private let name: Uploads.Name
    private let directory: String
    private let disk: DiskQueue
    private let file: EventLoopFuture<File>
    private var written: EventLoopFuture<Void>
    private var count = 0

    init(_ name: Uploads.Name, in uploads: Uploads, _ disk: DiskQueue, atMost most: Int) {
        (self.name, self.disk, directory, mostBytes) = (name, disk, uploads.directory, (most, .uploadBytes))
        file = disk.run { try uploads.makeFile() }
        written = file.map { _ in }
    }

    func receive(_ bytes: ByteBuffer) -> EventLoopFuture<Void> {
        let (disk, offset) = (disk, count)
        count += bytes.readableBytes
        written = written.and(file).flatMap { _, file in
            disk.run { try file.write(Array(bytes.readableBytesView), at: offset) }
        }
        return written
    }

    func end() -> EventLoopFuture<Response> {
        let (disk, count, name, path) = (disk, count, name.text, "\(directory)/\(name.text)")
        return written.and(file).flatMap { _, file in
            disk.run {
                try file.sync()
                try Disk.current.rename(file.path, to: path)
                try Disk.current.syncDirectory(of: path)
                return Response(#"{"name":"\#(name)","bytes":\#(count)}"# + "\n", .created, type: "application/json")
            }
        }.assumeIsolated().flatMapErrorThrowing { error in
            self.abandon()
            throw error
        }.nonisolated()
    }

    func abandon() {
        let disk = disk
        file.and(written.recover { _ in }).whenSuccess { file, _ in
            _ = disk.run { try Disk.current.remove(file.path) }
        }
    }
}
