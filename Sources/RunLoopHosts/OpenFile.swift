/// A file that a simulated process has opened.
final class OpenFile: OpenDescription {
    let node: SimulatedDisk.Node
    private let disk: SimulatedDisk

    init(_ node: SimulatedDisk.Node, on disk: SimulatedDisk) {
        (self.node, self.disk) = (node, disk)
    }

    override func close() {
        disk.close(self)
    }
}
