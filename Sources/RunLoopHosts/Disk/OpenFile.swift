/// A file that a simulated process has opened.
final class OpenFile: OpenDescription {
    let node: FileNode
    let isWritable: Bool
    private let disk: SimulatedDisk

    init(_ node: FileNode, on disk: SimulatedDisk, isWritable: Bool) {
        (self.node, self.disk, self.isWritable) = (node, disk, isWritable)
        node.openings += 1
    }

    override func close() {
        disk.close(node, isWritable: isWritable, by: self)
    }
}
