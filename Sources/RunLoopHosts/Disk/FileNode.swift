/// A file of a simulated disk.
final class FileNode: DiskNode {
    /// A change of the content.
    enum Change {
        case write([UInt8], at: Int)
        case truncate(Int)

        func apply(to content: inout [UInt8]) {
            switch self {
            case .write(let bytes, let offset):
                if content.count < offset + bytes.count { Change.truncate(offset + bytes.count).apply(to: &content) }
                content.replaceSubrange(offset..<offset + bytes.count, with: bytes)
            case .truncate(let length) where length < content.count: content.removeLast(content.count - length)
            case .truncate(let length): content += [UInt8](repeating: 0, count: length - content.count)
            }
        }
    }

    /// The bytes that a reader finds.
    private(set) var content: [UInt8] = []
    /// The bytes that survive every crash.
    private var durable: [UInt8] = []
    /// The changes since the last sync.
    private(set) var changes: [Change] = []

    func change(_ change: Change) {
        change.apply(to: &content)
        changes.append(change)
    }

    /// Replaces the content, durably.
    func install(_ content: [UInt8]) {
        self.content = content
        sync()
    }

    func sync() {
        durable = content
        changes.removeAll()
    }

    /// Loses the unsynced changes, except the ones that a crash keeps.
    func crash(keeping kept: some Sequence<Change>) {
        for change in kept { change.apply(to: &durable) }
        changes.removeAll()
        content = durable
        crash()
    }
}
