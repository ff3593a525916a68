import Glibc
import RunLoopKit
import RunLoopUnix

/// A file of frames that is being written. One thread at a time may use it; any thread may sync it meanwhile.
///
/// The file is locked as long as it is open. A new file is written beside its place, under a name that no other process
/// may have taken, and gets its place when it is complete and on the disk.
final class FrameFile: @unchecked Sendable {
    let path: String
    /// The number of bytes in complete frames.
    private(set) var length: Int
    private let disk: Disk
    private let file: File
    private var sum: UInt32
    private var temporary: String?

    /// Begins a new file, replacing any leftover of a killed process: the caller has the lock.
    init(replacing path: String, _ kind: Frame.Kind) throws(DiskError) {
        self.path = path
        let temporary = FrameFile.temporary(of: path)
        let disk = Disk.current
        self.disk = disk
        try? disk.remove(temporary)
        file = try DiskError.doing("open \(temporary)") { () throws(SystemError) in
            let file = try disk.open(temporary, .readingAndWritingNew)
            // Before it takes the place of the old one.
            try file.lock()
            return file
        }
        self.temporary = temporary
        (length, sum) = (0, 0)
        try write(Array(kind.rawValue.utf8))
    }

    /// Opens the file in its place, or makes an empty one, and locks out all other processes.
    ///
    /// - Throws: `DiskError` if another process has locked the file, by any path, or if it cannot be created.
    init(at path: String) throws(DiskError) {
        self.path = path
        disk = Disk.current
        file = try FileLock.open(path, of: path)
        (length, sum) = (0, 0)
    }

    /// Calls the body with all changes in the file. More can be appended afterwards; a broken end is cut off.
    ///
    /// - Returns: the length of the broken end, in bytes; `nil` if the file is empty.
    func load(_ kind: Frame.Kind, _ body: (Store.Change) -> Void) throws(DiskError) -> Int? {
        let (extent, count) = try DiskError.withContents(of: file) { bytes throws(DiskError) in
            guard !bytes.isEmpty else { return (Frame.Extent(end: 0), 0) }
            return (try Frame.read(bytes, kind, of: path, body), bytes.count)
        }
        guard count > 0 else { return nil }
        (length, sum) = (extent.end, extent.sum)
        RunLoop.sometimes("the log had a broken end", if: length < count)
        try truncate()
        try sync()
        return count - length
    }

    deinit {
        if let temporary { try? disk.remove(temporary) }
    }

    static func temporary(of path: String) -> String { path + ".tmp" }

    /// Appends a frame. If that fails, the file is unchanged.
    func append(_ changes: [UInt8]) throws(DiskError) {
        let next = changes.withUnsafeBytes { Checksum.of($0, after: sum) }
        try write(Frame.head(length: changes.count, sum: next) + changes)
        sum = next
    }

    /// Appends the end of a snapshot.
    func appendEnd() throws(DiskError) {
        try write(Frame.head(length: 0, sum: sum))
    }

    private func write(_ bytes: [UInt8]) throws(DiskError) {
        do {
            try DiskError.doing("write \(temporary ?? path)") { () throws(SystemError) in
                try file.write(bytes, at: length)
            }
        } catch {
            RunLoop.sometimes("a write to the log was taken back")
            try truncate()
            throw error
        }
        length += bytes.count
    }

    private func truncate() throws(DiskError) {
        try DiskError.doing("truncate \(path)", isLoss: true) { () throws(SystemError) in
            try file.truncate(to: length)
        }
    }

    /// Waits until the whole file is on the disk. After an error the state of the disk is unknown, and writing again
    /// does not help.
    func sync() throws(DiskError) {
        try DiskError.doing("sync \(path)", isLoss: true) { () throws(SystemError) in try file.sync() }
    }

    /// Moves a new file to its place, once it is on the disk.
    func install() throws(DiskError) {
        try sync()
        guard let temporary else { return }
        try DiskError.doing("rename \(temporary) to \(path)") { () throws(SystemError) in
            try disk.rename(temporary, to: path)
        }
        RunLoop.sometimes("the log was written anew")
        self.temporary = nil
        // The new name is safe only when its directory is.
        try DiskError.doing("sync the directory of \(path)") { () throws(SystemError) in
            try disk.syncDirectory(of: path)
        }
    }
}

/// A lock on a name against every other process, for a file that is replaced each time it is written.
final class FileLock {
    private let file: File

    /// - Throws: `DiskError` if another process has the lock, or if it cannot be created.
    init(for path: String) throws(DiskError) {
        file = try FileLock.open(path + ".lock", of: path)
    }

    /// Opens and locks the file that reserves a path for this process.
    ///
    /// - Throws: `DiskError` if another process has locked the file, or if it cannot be created, as in a missing
    ///   directory.
    static func open(_ name: String, of path: String) throws(DiskError) -> File {
        let disk = Disk.current
        let file: File
        do throws(SystemError) {
            file = try disk.open(name, .readingAndWritingLocked)
        } catch {
            switch error.errno {
            case EWOULDBLOCK: throw DiskError("another process uses \(path); lock \(name)", EWOULDBLOCK)
            case ENOENT:
                let directory = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
                throw DiskError("the directory \(directory) of \(path)", ENOENT)
            default: throw DiskError(error.operation, error.errno)
            }
        }
        // Left by a killed process.
        try? disk.remove(FrameFile.temporary(of: path))
        return file
    }
}
