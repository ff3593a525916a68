internal import Glibc
internal import Synchronization

/// An open file of a ``Disk``. It closes with its last reference. It is `Sendable`; simultaneous calls on several
/// threads behave as the system's own calls.
public final class File: Sendable {
    /// The access for which a file is opened.
    public enum Access: Sendable, Hashable {
        /// Reading.
        case reading
        /// Writing to an existing file.
        case writing
        /// Reading and writing a new file, which must not exist. Only its owner has access to it.
        case readingAndWritingNew
        /// Reading and writing, with a lock against other processes as long as the file is open; see ``File/lock()``.
        /// The file is made if it does not exist.
        case readingAndWritingLocked

        /// The former name of ``readingAndWritingNew``.
        @available(*, deprecated, renamed: "readingAndWritingNew")
        public static var creating: Access { .readingAndWritingNew }
        /// The former name of ``readingAndWritingLocked``.
        @available(*, deprecated, renamed: "readingAndWritingLocked")
        public static var locking: Access { .readingAndWritingLocked }
    }

    /// The path at which the file was opened.
    public let path: String
    private let descriptor: Int32
    private let system: any SystemCalls

    private let isLocked = Atomic(false)

    init(_ path: String, _ descriptor: Int32, _ system: any SystemCalls) {
        (self.path, self.descriptor, self.system) = (path, descriptor, system)
    }

    deinit {
        system.release(descriptor, unlocking: isLocked.load(ordering: .relaxed))
    }

    /// Locks the file until it closes, as `flock(2)` does: no other open file can lock it meanwhile, by any path. Lock
    /// a new file that will replace a locked one before ``Disk/rename(_:to:)``, so that the path always leads to a
    /// locked file.
    ///
    /// - Throws: ``SystemError``, with `EWOULDBLOCK` if another open file has the lock.
    public func lock() throws(SystemError) {
        guard system.lock(descriptor) == 0 else { throw .last("lock \(path)") }
        isLocked.store(true, ordering: .relaxed)
    }

    /// Writes bytes at an offset, perhaps beyond the present end. O(bytes).
    ///
    /// - Throws: ``SystemError``, for example with `ENOSPC`. Some of the bytes may have been written then.
    public func write(_ bytes: [UInt8], at offset: Int) throws(SystemError) {
        var written = 0
        while written < bytes.count {
            let count = bytes.withUnsafeBytes {
                system.write(descriptor, UnsafeRawBufferPointer(rebasing: $0[written...]), at: offset + written)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw SystemError("write \(path)", errno: count < 0 ? errno : ENOSPC) }
            written += count
        }
    }

    /// Truncates the file, or extends it with zeros.
    public func truncate(to length: Int) throws(SystemError) {
        guard system.truncate(descriptor, to: length) == 0 else { throw .last("truncate \(path)") }
    }

    /// Waits until all written bytes are on the disk. After an error it is unknown which bytes are there, and another
    /// attempt does not help.
    public func sync() throws(SystemError) {
        guard system.sync(descriptor) == 0 else { throw .last("sync \(path)") }
    }

    /// All bytes, as they are when they are read. Use this for a file that another process may write meanwhile, such as
    /// a settings file. O(bytes).
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

    /// Up to `count` bytes at an offset, as they are when they are read; fewer than that only at the end of the file, and
    /// none behind it. Use this to send a large file piece by piece, also if another process may shorten it meanwhile.
    /// O(bytes).
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
        }
        bytes.removeLast(bytes.count - total)
        return bytes
    }

    /// Calls `body` with all bytes of a regular file, which are read on demand, and are valid until it returns. The
    /// file must be this process's own: if another process truncates it meanwhile, a signal ends this process.
    ///
    /// - Throws: ``SystemError``, with `EINVAL` if it is no regular file; any error that `body` throws.
    public func withContents<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws -> Result {
        guard let contents = system.map(descriptor) else { throw SystemError.last("read \(path)") }
        defer { system.unmap(contents) }
        return try body(contents)
    }
}
