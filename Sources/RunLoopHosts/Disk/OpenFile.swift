internal import Glibc

/// A file or a directory that a simulated process has opened.
final class OpenFile: OpenDescription {
    let node: DiskNode
    let isReadable: Bool
    let isWritable: Bool
    /// `true` if every write goes to the end of the file.
    let appends: Bool
    /// The position of the next byte, or of the next name in a directory, for a program of the system.
    var place = 0
    private let disk: SimulatedDisk

    /// - Parameter flags: the flags of the system call that opens the file.
    init(_ node: DiskNode, on disk: SimulatedDisk, flags: Int32) {
        (self.node, self.disk) = (node, disk)
        let access = flags & O_ACCMODE
        (isReadable, isWritable, appends) = (access != O_WRONLY, access != O_RDONLY, flags & O_APPEND != 0)
        node.openings += 1
    }

    /// The file, if it can be written; `nil`, with `EBADF`, if it was opened for reading.
    var writable: FileNode? { isWritable ? node as? FileNode : failure(EBADF) }

    /// Takes the lock of the file, if no other open file is in the way. As on Linux, a lock of the other kind is lost
    /// before that.
    func lock(isShared: Bool = false) -> Int32 {
        let lock = wholeLock(isShared)
        if node.locks.has(lock) { return 0 }
        unlock()
        if !mayLock(isShared: isShared) { return failure(EWOULDBLOCK) }
        node.locks.add(lock)
        return 0
    }

    /// Returns `true` if no other open file is in the way of a lock.
    func mayLock(isShared: Bool) -> Bool { node.locks.conflict(with: wholeLock(isShared)) == nil }

    private func wholeLock(_ isShared: Bool) -> PartLocks.Lock {
        PartLocks.Lock(owner: ObjectIdentifier(self), process: -1, isShared: isShared, part: 0..<Int.max)
    }

    func unlock() { node.locks.release(of: ObjectIdentifier(self)) }

    override func close() {
        unlock()
        node.partLocks.release(of: ObjectIdentifier(self))
        if isWritable { disk.tell(IN_CLOSE_WRITE, node) }
        disk.hasClosed(node)
    }
}
