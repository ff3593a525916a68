internal import Glibc
internal import Synchronization

/// An open file of a ``Disk``. It closes with its last reference. It is `Sendable`; calls on several threads at the same time
/// are those of the system.
public final class File: Sendable {
    /// What a file is opened for.
    public enum Access: Sendable, Hashable {
        /// To be read.
        case reading
        /// To be written; it exists.
        case writing
        /// To be written; it is made, for its owner alone, and must not exist.
        case creating
        /// To be read and written, and to keep other processes away as long as it is open; see ``File/lock()``. It is made if
        /// it does not exist.
        case locking
    }

    /// Where it was opened.
    public let path: String
    private let descriptor: Int32
    private let system: any SystemCalls

    private let isLocked = Atomic(false)

    init(_ path: String, _ descriptor: Int32, _ system: any SystemCalls) {
        (self.path, self.descriptor, self.system) = (path, descriptor, system)
    }

    deinit {
        if isLocked.load(ordering: .relaxed) { system.unlock(descriptor) }
        system.close(descriptor)
    }

    /// Locks the file until it closes, as `flock(2)` does: nobody else can lock it meanwhile, by whatever path. A new file that
    /// is to take the place of a locked one is locked before ``Disk/rename(_:to:)``, so that the path always leads to a file
    /// that is.
    ///
    /// - Throws: ``SystemError``, with `EWOULDBLOCK` if somebody else has locked it.
    public func lock() throws(SystemError) {
        guard system.lock(descriptor) == 0 else { throw .last("lock \(path)") }
        isLocked.store(true, ordering: .relaxed)
    }

    /// Writes bytes at a place, perhaps beyond the present end. O(bytes).
    ///
    /// - Throws: ``SystemError``, for example with `ENOSPC`. A part may have been written then.
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

    /// Cuts the file off, or extends it with zeros.
    public func truncate(to length: Int) throws(SystemError) {
        guard system.truncate(descriptor, to: length) == 0 else { throw .last("truncate \(path)") }
    }

    /// Waits until all that was written is on the disk. After an error nobody knows what is, and to try again does not help.
    public func sync() throws(SystemError) {
        guard system.sync(descriptor) == 0 else { throw .last("sync \(path)") }
    }

    /// All bytes, as they are when they are read: for a file that somebody may write meanwhile, such as one with settings.
    /// O(bytes).
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

    /// Calls `body` with all bytes of a regular file, which are read as they are needed, and are valid until it returns. The
    /// file must be this process's own: if somebody cuts it off meanwhile, a signal ends the process.
    ///
    /// - Throws: ``SystemError``, with `EINVAL` if it is no regular file; what `body` throws.
    public func withContents<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws -> Result {
        guard let contents = system.map(descriptor) else { throw SystemError.last("read \(path)") }
        defer { system.unmap(contents) }
        return try body(contents)
    }
}
