internal import Glibc
internal import Synchronization

/// An open file of a ``Disk``, closed with its last reference. `Sendable`; simultaneous calls on several threads behave
/// as the system's own calls.
public final class File: Sendable {
    /// The access for which a file is opened.
    public enum Access: Sendable, Hashable {
        /// Reading.
        case reading
        /// Writing to an existing file.
        case writing
        /// Adding to the end of a file, with ``File/append(_:)``. The file is created if it does not exist; only its owner
        /// has access then.
        case appending
        /// Reading and writing a new file, which must not exist. Only its owner has access.
        case readingAndWritingNew
        /// Reading and writing, with a lock against other processes while the file is open; see ``File/lock()``. The
        /// file is created if it does not exist.
        case readingAndWritingLocked
    }

    /// The path at which the file was opened.
    public let path: String
    private let descriptor: Int32
    private let appends: Bool
    private let system: any SystemCalls

    private let isLocked = Atomic(false)

    init(_ path: String, _ descriptor: Int32, appends: Bool, _ system: any SystemCalls) {
        assert(descriptor >= 0, "a file was not opened")
        (self.path, self.descriptor, self.appends, self.system) = (path, descriptor, appends, system)
    }

    deinit {
        system.release(descriptor, unlocking: isLocked.load(ordering: .relaxed))
    }

    /// Locks the file until it closes, as `flock(2)` does: no other open file can lock it meanwhile, by any path.
    /// Before ``Disk/rename(_:to:)`` replaces a locked file, lock the new one, so that the path always leads to a
    /// locked file.
    ///
    /// - Throws: ``SystemError``, with `EWOULDBLOCK` if another open file has the lock.
    public func lock() throws(SystemError) {
        guard system.lock(descriptor) == 0 else { throw .last("lock \(path)") }
        isLocked.store(true, ordering: .relaxed)
    }

    /// Writes bytes at an offset, which may lie beyond the current end. O(bytes).
    ///
    /// - Throws: ``SystemError``, for example with `ENOSPC`; some of the bytes may then have been written. With `EINVAL`
    ///   if the file was opened for ``Access/appending``: use ``append(_:)``.
    public func write(_ bytes: [UInt8], at offset: Int) throws(SystemError) {
        guard !appends else { throw SystemError("write \(path) at an offset", errno: EINVAL) }
        try put(bytes, at: offset)
    }

    /// Adds bytes to the end of a file that was opened for ``Access/appending``. Each call finds the end anew, as
    /// `write(2)` does with `O_APPEND`: processes that append to one file do not overwrite each other's bytes. O(bytes).
    ///
    /// - Throws: ``SystemError``, for example with `ENOSPC`; some of the bytes may then have been written. With `EINVAL`
    ///   if the file was opened for another access: use ``write(_:at:)``.
    public func append(_ bytes: [UInt8]) throws(SystemError) {
        guard appends else { throw SystemError("append to \(path)", errno: EINVAL) }
        // Linux ignores the offset of a file that was opened with O_APPEND.
        try put(bytes, at: 0)
    }

    private func put(_ bytes: [UInt8], at offset: Int) throws(SystemError) {
        var written = 0
        while written < bytes.count {
            let count = bytes.withUnsafeBytes {
                system.write(descriptor, UnsafeRawBufferPointer(rebasing: $0[written...]), at: offset + written)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw SystemError("write \(path)", errno: count < 0 ? errno : ENOSPC) }
            written += count
            assert(written <= bytes.count, "more was written than there was")
        }
    }

    /// Returns the number of bytes of a regular file. O(1).
    ///
    /// - Throws: ``SystemError``, with `EINVAL` for anything but a regular file.
    public func size() throws(SystemError) -> Int {
        let size = system.size(of: descriptor)
        guard size >= 0 else { throw .last("find the size of \(path)") }
        return size
    }

    /// Truncates the file, or extends it with zeros.
    public func truncate(to length: Int) throws(SystemError) {
        guard system.truncate(descriptor, to: length) == 0 else { throw .last("truncate \(path)") }
    }

    /// Waits until all written bytes are on the disk. After an error, it is unknown which bytes are there, and another
    /// attempt does not help.
    public func sync() throws(SystemError) {
        guard system.sync(descriptor) == 0 else { throw .last("sync \(path)") }
    }

    /// Reads all bytes into memory. Use it for a file that another process may write meanwhile, such as a settings
    /// file. O(bytes).
    public func contents() throws(SystemError) -> [UInt8] {
        var bytes: [UInt8] = []
        while true {
            let count = withUnsafeTemporaryAllocation(byteCount: 16_384, alignment: 1) { room in
                let count = system.read(descriptor, into: room, at: bytes.count)
                if count > 0 { bytes += room.prefix(count) }
                return count
            }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw .last("read \(path)") }
            if count == 0 { return bytes }
        }
    }

    /// Reads up to `count` bytes at an offset; fewer only at the end of the file, and none beyond it. Use it to send a
    /// large file piece by piece, even if another process may shorten the file meanwhile. O(bytes).
    ///
    /// - Throws: ``SystemError``, for example with `EISDIR` for a directory, or `ESPIPE` for a FIFO.
    public func read(_ count: Int, at offset: Int) throws(SystemError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: max(0, count))
        var total = 0
        while total < bytes.count {
            let read = bytes.withUnsafeMutableBytes {
                system.read(
                    descriptor, into: UnsafeMutableRawBufferPointer(rebasing: $0[total...]), at: offset + total)
            }
            if read < 0, errno == EINTR { continue }
            guard read >= 0 else { throw .last("read \(path)") }
            if read == 0 { break }
            total += read
            assert(total <= bytes.count, "more was read than there is room for")
        }
        bytes.removeLast(bytes.count - total)
        return bytes
    }

    /// Calls `body` with all bytes of a regular file, which are read on demand and valid until it returns. No other
    /// process may change the file: if one truncates it meanwhile, a signal ends this process.
    ///
    /// - Throws: ``SystemError``, with `EINVAL` if the file is not regular; any error that `body` throws.
    public func withContents<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws -> Result {
        guard let contents = system.map(descriptor) else { throw SystemError.last("read \(path)") }
        defer { system.unmap(contents) }
        return try body(contents)
    }
}
