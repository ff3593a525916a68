internal import Glibc

/// A file that a simulated process has opened.
final class OpenFile: OpenDescription {
    let node: FileNode
    let isReadable: Bool
    let isWritable: Bool
    private let disk: SimulatedDisk

    /// - Parameter access: `O_RDONLY`, `O_WRONLY` or `O_RDWR`.
    init(_ node: FileNode, on disk: SimulatedDisk, access: Int32) {
        (self.node, self.disk) = (node, disk)
        (isReadable, isWritable) = (access != O_WRONLY, access != O_RDONLY)
        node.openings += 1
    }

    override func close() {
        disk.close(node, isWritable: isWritable, by: self)
    }
}
