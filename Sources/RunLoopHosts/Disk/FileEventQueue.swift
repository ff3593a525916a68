internal import Glibc
internal import RunLoopCore
internal import RunLoopUnix

/// The watches of a file watcher of a simulated process, and their pending events: the kernel's inotify instance.
final class FileEventQueue: OpenDescription {
    private enum Target {
        case file(FileNode)
        case directory(String)
    }

    private let disk: SimulatedDisk
    private var watches: [(number: Int32, target: Target, mask: UInt32)] = []
    private var lastNumber: Int32 = 0
    private var records: [InotifyRecord] = []

    init(on disk: SimulatedDisk) {
        self.disk = disk
    }

    override var isPollable: Bool { true }
    override var readiness: DescriptorEvents { records.isEmpty ? [] : .readable }

    // MARK: Watches

    func watch(_ path: String, for mask: UInt32) -> Int32 {
        if let reason = disk.reason(againstUseOf: path) { return failure(reason) }
        let target = disk.node(at: path).map(Target.file) ?? .directory(Directories.name(path))
        guard !watches.contains(where: { isSame($0.target, target) }) else { return failure(EEXIST) }
        if watches.isEmpty { disk.add(self) }
        lastNumber += 1
        watches.append((lastNumber, target, mask))
        return lastNumber
    }

    private func isSame(_ one: Target, _ other: Target) -> Bool {
        switch (one, other) {
        case (.file(let one), .file(let other)): one === other
        case (.directory(let one), .directory(let other)): one == other
        default: false
        }
    }

    func unwatch(_ number: Int32) {
        guard let index = watches.firstIndex(where: { $0.number == number }) else { return }
        watches.remove(at: index)
        append(InotifyRecord(watch: number, mask: UInt32(IN_IGNORED), cookie: 0, name: []))
    }

    override func close() {
        disk.remove(self)
    }

    // MARK: Events

    /// Takes an event of a name in a directory.
    ///
    /// - Parameter kind: one of the kinds of `inotify`.
    func take(_ kind: Int32, in directory: String, name: String, cookie: UInt32) {
        for (number, target, mask) in watches where mask & UInt32(kind) != 0 {
            guard case .directory(directory) = target else { continue }
            append(InotifyRecord(watch: number, mask: UInt32(kind), cookie: cookie, name: Array(name.utf8)))
        }
    }

    /// Takes an event of a file, by whatever name.
    func take(_ kind: Int32, of node: FileNode) {
        for (number, target, mask) in watches {
            guard case .file(let watched) = target, watched === node else { continue }
            if mask & UInt32(kind) != 0 {
                append(InotifyRecord(watch: number, mask: UInt32(kind), cookie: 0, name: []))
            }
            if kind == IN_DELETE_SELF { unwatch(number) }
        }
    }

    private func append(_ record: InotifyRecord) {
        // As in the kernel, an event that equals the last one is dropped.
        guard records.last != record else { return }
        let overflow = InotifyRecord(watch: -1, mask: UInt32(IN_Q_OVERFLOW), cookie: 0, name: [])
        guard records.count < disk.fileEventLimit else {
            if records.last != overflow { records.append(overflow) }
            return
        }
        records.append(record)
        tell()
    }

    override func read(into room: UnsafeMutableRawBufferPointer) -> Int {
        guard !records.isEmpty else { return failure(EAGAIN) }
        var bytes: [UInt8] = []
        var count = 0
        for record in records {
            let next = record.bytes
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
