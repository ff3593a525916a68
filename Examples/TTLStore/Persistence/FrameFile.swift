import Glibc
import RunLoopUnix

/// A file of frames that is being written. One thread at a time may use it.
///
/// A new file is written beside its place, under a name that nobody else may have taken, and gets its place when it is
/// whole and on the disk.
final class FrameFile: @unchecked Sendable {
    let path: String
    /// How many bytes of it are whole frames.
    private(set) var length: Int
    private let disk: Disk
    private let file: File
    private var sum: UInt32
    private var temporary: String?

    /// Begins a new file. A leftover of a process that was killed is replaced: whoever calls this has the lock.
    init(replacing path: String, _ kind: Frame.Kind) throws(DiskError) {
        self.path = path
        let temporary = FrameFile.temporary(of: path)
        let disk = Disk.current
        self.disk = disk
        try? disk.remove(temporary)
        file = try DiskError.doing("open \(temporary)") { () throws(SystemError) in
            try disk.open(temporary, .creating)
        }
        self.temporary = temporary
        (length, sum) = (0, 0)
        try write([Array(kind.rawValue.utf8)])
    }

    /// Goes on with a file, after the frames that are whole; what comes behind them is cut off.
    init(appendingTo path: String, _ extent: Frame.Extent) throws(DiskError) {
        self.path = path
        (length, sum) = (extent.end, extent.sum)
        let disk = Disk.current
        self.disk = disk
        file = try DiskError.doing("open \(path)") { () throws(SystemError) in try disk.open(path, .writing) }
        try truncate()
        try sync()
    }

    deinit {
        if let temporary { try? disk.remove(temporary) }
    }

    static func temporary(of path: String) -> String { path + ".tmp" }

    /// Appends a frame. If that fails, the file is as it was.
    func append(_ changes: [UInt8]) throws(DiskError) {
        let next = changes.withUnsafeBytes { Checksum.of($0, after: sum) }
        try write([Frame.head(length: changes.count, sum: next), changes])
        sum = next
    }

    /// Appends the end of a snapshot.
    func appendEnd() throws(DiskError) {
        try write([Frame.head(length: 0, sum: sum)])
    }

    private func write(_ pieces: [[UInt8]]) throws(DiskError) {
        let start = length
        for piece in pieces {
            do {
                try DiskError.doing("write \(temporary ?? path)") { () throws(SystemError) in
                    try file.write(piece, at: length)
                }
            } catch {
                length = start
                try truncate()
                throw error
            }
            length += piece.count
        }
    }

    private func truncate() throws(DiskError) {
        try DiskError.doing("truncate \(path)", isLoss: true) { () throws(SystemError) in
            try file.truncate(to: length)
        }
    }

    /// Waits until all of it is on the disk. After an error nobody knows what is, and to write it again does not help.
    func sync() throws(DiskError) {
        try DiskError.doing("sync \(temporary ?? path)", isLoss: true) { () throws(SystemError) in try file.sync() }
    }

    /// Gives a new file its place, once it is on the disk.
    func install() throws(DiskError) {
        try sync()
        guard let temporary else { return }
        try DiskError.doing("rename \(temporary) to \(path)") { () throws(SystemError) in
            try disk.rename(temporary, to: path)
        }
        self.temporary = nil
        // The new name is safe only when its directory is.
        try DiskError.doing("sync the directory of \(path)") { () throws(SystemError) in
            try disk.syncDirectory(of: path)
        }
    }
}

/// Keeps every other process away from a file, as long as it lives.
final class FileLock {
    private let file: File

    /// - Throws: if another process has the lock, or if there can be none, as in a directory that is missing.
    init(for path: String) throws(DiskError) {
        let disk = Disk.current
        let name = path + ".lock"
        do throws(SystemError) {
            file = try disk.open(name, .locking)
        } catch {
            switch error.errno {
            case EWOULDBLOCK: throw DiskError("another process uses \(path); lock \(name)", EWOULDBLOCK)
            case ENOENT:
                let directory = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
                throw DiskError("the directory \(directory) of \(path)", ENOENT)
            default: throw DiskError(error.operation, error.errno)
            }
        }
        // Of a process that was killed.
        try? disk.remove(FrameFile.temporary(of: path))
    }
}
