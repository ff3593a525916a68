internal import Glibc

/// A file or a directory that a simulated process has opened.
final class OpenFile: OpenDescription {
    let node: DiskNode
    let isReadable: Bool
    let isWritable: Bool
    private let disk: SimulatedDisk

    /// - Parameter access: `O_RDONLY`, `O_WRONLY` or `O_RDWR`.
    init(_ node: DiskNode, on disk: SimulatedDisk, access: Int32) {
        (self.node, self.disk) = (node, disk)
        (isReadable, isWritable) = (access != O_WRONLY, access != O_RDONLY)
        node.openings += 1
    }

    /// The file, if it can be written; `nil`, with `EBADF`, if it was opened for reading.
    var writable: FileNode? { isWritable ? node as? FileNode : failure(EBADF) }

    /// Takes the lock of the file, if no other open file has it.
    func lock() -> Int32 {
        guard node.lock ?? self === self else { return failure(EWOULDBLOCK) }
        node.lock = self
        return 0
    }

    func unlock() {
        if node.lock === self { node.lock = nil }
    }

    override func close() {
        unlock()
        if isWritable { disk.tell(IN_CLOSE_WRITE, node) }
        disk.hasClosed(node)
    }
}
