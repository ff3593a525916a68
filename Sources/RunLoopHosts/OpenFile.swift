/// A file that a simulated process has opened.
final class OpenFile: OpenDescription {
    let node: SimulatedDisk.Node
    let isWritable: Bool
    private let disk: SimulatedDisk

    init(_ node: SimulatedDisk.Node, on disk: SimulatedDisk, isWritable: Bool) {
        (self.node, self.disk, self.isWritable) = (node, disk, isWritable)
        node.openings += 1
    }

    override func close() {
        disk.close(self)
    }
}
