internal import Glibc
internal import RunLoopCore
internal import RunLoopUnix

/// The watches of a file watcher of a simulated process, and their pending events: the kernel's inotify instance.
final class FileEventQueue: OpenDescription {
    /// The interest in a file, or in the names of a directory.
    private struct Watch {
        let number: Int32
        let file: FileNode?
        let directory: String?
        let mask: UInt32
    }

    private let disk: SimulatedDisk
    private var watches: [Watch] = []
    private var lastNumber: Int32 = 0
    private var records: [InotifyRecord] = []

    init(on disk: SimulatedDisk) {
        self.disk = disk
    }

    override var readiness: DescriptorEvents? { records.isEmpty ? [] : .readable }

    // MARK: Watches

    func watch(_ path: String, for mask: UInt32) -> Int32 {
        if let reason = disk.reason(againstUseOf: path) { return failure(reason) }
        let file = disk.node(at: path)
        let directory = file == nil ? Directories.name(path) : nil
        if watches.contains(where: { $0.file === file && $0.directory == directory }) { return failure(EEXIST) }
        if watches.isEmpty { disk.state.queues.append(self) }
        lastNumber += 1
        watches.append(Watch(number: lastNumber, file: file, directory: directory, mask: mask))
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

    /// Takes an event of a name in a directory.
    ///
    /// - Parameter kind: one of the kinds of `inotify`.
    func take(_ kind: Int32, in directory: String, name: String, cookie: UInt32) {
        for watch in watches where watch.directory == directory && watch.mask & UInt32(kind) != 0 {
            append(kind, of: watch.number, cookie: cookie, name: Array(name.utf8))
        }
    }

    /// Takes an event of a file, by whatever name.
    func take(_ kind: Int32, of file: FileNode) {
        for watch in watches where watch.file === file {
            if watch.mask & UInt32(kind) != 0 { append(kind, of: watch.number) }
            if kind == IN_DELETE_SELF { unwatch(watch.number) }
        }
    }

    private func append(_ kind: Int32, of watch: Int32, cookie: UInt32 = 0, name: [UInt8] = []) {
        let record = InotifyRecord(watch: watch, mask: UInt32(kind), cookie: cookie, name: name)
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
        for next in records.lazy.map(\.bytes) {
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
