internal import Glibc

/// The disk of a world: the system's, or a simulated host's, which may lose unsynced data.
///
/// A daemon that must not lose data writes a ``File``, and waits with ``File/sync()`` until it is on the disk. A new
/// file, directory or name is safe once its directory has been synced as well.
///
/// ```swift
/// let disk = Disk.current
/// let file = try disk.open("state.tmp", .readingAndWritingNew)
/// try file.write(bytes, at: 0)
/// try file.sync()
/// try disk.rename("state.tmp", to: "state")
/// try disk.syncDirectory(of: "state")
/// ```
///
/// All calls block the calling thread until the system has completed them; for slow operations, use another thread,
/// such as a `LoopThread`. A disk is `Sendable`, and may be used on any thread of its world.
public struct Disk: Sendable {
    private let system: any SystemCalls

    /// The disk of the calling thread's world.
    public static var current: Disk { Disk(system: WorldSystem.current) }

    /// Opens a file, to be closed on `exec`. Does not follow a symbolic link. A path that is not a regular file may be
    /// opened, without waiting for the other end of a FIFO, but the calls of ``File`` then fail.
    ///
    /// - Throws: ``SystemError``, for example with `ENOENT`; with `EEXIST` if a file to be created exists; with
    ///   `EWOULDBLOCK` if another process has locked the file.
    public func open(_ path: String, _ access: File.Access) throws(SystemError) -> File {
        let flags =
            switch access {
            case .reading: O_RDONLY
            case .writing: O_WRONLY
            case .appending: O_WRONLY | O_CREAT | O_APPEND
            case .readingAndWritingNew: O_RDWR | O_CREAT | O_EXCL
            case .readingAndWritingLocked: O_RDWR | O_CREAT
            }
        while true {
            let descriptor = system.open(path, flags: flags)
            guard descriptor >= 0 else { throw .last("open \(path)") }
            let file = File(path, descriptor, appends: access == .appending, system)
            guard access == .readingAndWritingLocked else { return file }
            try file.lock()
            // The former owner of the lock may have replaced this file after it was opened.
            if system.leads(path, to: descriptor) { return file }
        }
    }

    /// Returns a Boolean value that indicates whether there is a file or a directory at the path.
    public func exists(_ path: String) -> Bool { system.exists(path) }

    /// Renames a file or a directory within its file system, atomically replacing any file, or empty directory, of the
    /// new name, which always leads to one or the other.
    ///
    /// - Throws: ``SystemError``, for example with `EISDIR`, `ENOTDIR` or `ENOTEMPTY` if the new name cannot be
    ///   replaced, and with `EINVAL` if a directory would lie in itself.
    public func rename(_ path: String, to newPath: String) throws(SystemError) {
        guard system.rename(path, to: newPath) == 0 else { throw .last("rename \(path) to \(newPath)") }
    }

    /// Removes a file's name; the file itself is removed when no process has it open.
    ///
    /// - Throws: ``SystemError``, for example with `EISDIR` for a directory.
    public func remove(_ path: String) throws(SystemError) {
        guard system.removeFile(at: path) == 0 else { throw .last("remove \(path)") }
    }

    /// Creates a directory in an existing one, accessible only to its owner. The new directory is safe once its parent
    /// has been synced, with ``syncDirectory(of:)`` and the same path.
    ///
    /// - Throws: ``SystemError``, for example with `EEXIST` if the name is taken, or `ENOENT` without a parent.
    public func createDirectory(_ path: String) throws(SystemError) {
        guard system.createDirectory(path) == 0 else { throw .last("create the directory \(path)") }
    }

    /// Returns the names in a directory, sorted, without `.` and `..`. In a name that is not UTF-8, U+FFFD replaces
    /// invalid bytes. O(*n* log *n*) for *n* names.
    ///
    /// - Throws: ``SystemError``, for example with `ENOENT`, or `ENOTDIR` for a file.
    public func contentsOfDirectory(_ path: String) throws(SystemError) -> [String] {
        guard let names = system.contentsOfDirectory(path) else { throw .last("list the directory \(path)") }
        return names.sorted()
    }

    /// Removes an empty directory.
    ///
    /// - Throws: ``SystemError``, for example with `ENOTEMPTY`, or `ENOTDIR` for a file.
    public func removeDirectory(_ path: String) throws(SystemError) {
        guard system.removeDirectory(path) == 0 else { throw .last("remove the directory \(path)") }
    }

    /// Waits until the names in the directory of a path are on the disk.
    public func syncDirectory(of path: String) throws(SystemError) {
        let directory = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
        guard system.syncDirectory(directory) == 0 else { throw .last("sync \(directory)") }
    }
}
