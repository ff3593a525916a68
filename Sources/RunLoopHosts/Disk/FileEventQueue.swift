internal import Glibc
internal import RunLoopCore
@_spi(Ports) internal import RunLoopUnix

/// The watches of a file watcher of a simulated process, and their pending events: the kernel's inotify instance.
final class FileEventQueue: OpenDescription {
    /// The interest in a file, or in a directory and its names.
    private struct Watch {
        let number: Int32
        let node: DiskNode
        let mask: UInt32
    }

    private let disk: SimulatedDisk
    private var watches: [Watch] = []
    private var lastNumber: Int32 = 0
    private var records: [[UInt8]] = []

    init(on disk: SimulatedDisk) {
        self.disk = disk
    }

    override var readiness: DescriptorEvents? { records.isEmpty ? [] : .readable }

    // MARK: Watches

    func watch(_ path: String, for mask: UInt32, as user: ChildProcess.User) -> Int32 {
        let node: DiskNode
        do throws(Refusal) {
            node = try disk.node(at: path, as: user)
            try node.check(.read, user)
        } catch { return failure(error.reason) }
        if watches.contains(where: { $0.node === node }) { return failure(EEXIST) }
        if watches.isEmpty { disk.state.queues.append(self) }
        lastNumber += 1
        watches.append(Watch(number: lastNumber, node: node, mask: mask))
        return lastNumber
    }

    func unwatch(_ number: Int32) {
        guard let index = watches.firstIndex(where: { $0.number == number }) else { return }
        watches.remove(at: index)
        append(IN_IGNORED, of: number)
    }

    override func close() {
        disk.state.queues.removeAll { $0 === self }
    }

    // MARK: Events

    /// Takes an event of a node's name in a directory.
    ///
    /// - Parameters:
    ///   - kind: one of the kinds of `inotify`.
    ///   - name: the node's name there, if it differs from the present one.
    func take(_ kind: Int32, of node: DiskNode, in directory: DirectoryNode, named name: String? = nil, cookie: UInt32)
    {
        for watch in watches where watch.node === directory && watch.mask & UInt32(kind) != 0 {
            append(kind | Self.flag(of: node), of: watch.number, cookie: cookie, name: Array((name ?? node.name).utf8))
        }
    }

    /// Takes an event of a node, by whatever name.
    func take(_ kind: Int32, of node: DiskNode) {
        // As in the kernel, events of the end and the moves of a directory do not mark it as one.
        let flag = [IN_DELETE_SELF, IN_MOVE_SELF].contains(kind) ? 0 : Self.flag(of: node)
        for watch in watches where watch.node === node {
            if watch.mask & UInt32(kind) != 0 { append(kind | flag, of: watch.number) }
            if kind == IN_DELETE_SELF { unwatch(watch.number) }
        }
    }

    private static func flag(of node: DiskNode) -> Int32 { node is DirectoryNode ? IN_ISDIR : 0 }

    private func append(_ kind: Int32, of watch: Int32, cookie: UInt32 = 0, name: [UInt8] = []) {
        let record = FileWatcher.record(watch: watch, mask: UInt32(kind), cookie: cookie, name: name)
        // As in the kernel, an event equal to the last one is dropped.
        guard records.last != record else { return }
        let overflow = FileWatcher.record(watch: -1, mask: UInt32(IN_Q_OVERFLOW), cookie: 0, name: [])
        guard records.count < disk.fileEventLimit else {
            if records.last != overflow { records.append(overflow) }
            disk.simulation.meet(.fileEventsLost)
            return
        }
        records.append(record)
        tell()
    }

    override func read(into room: UnsafeMutableRawBufferPointer) -> Int {
        guard !records.isEmpty else { return failure(EAGAIN) }
        var bytes: [UInt8] = []
        var count = 0
        for next in records {
            guard bytes.count + next.count <= room.count else { break }
            bytes += next
            count += 1
        }
        guard count > 0 else { return failure(EINVAL) }
        records.removeFirst(count)
        room.copyBytes(from: bytes)
        return bytes.count
    }
}
