/// A file of a simulated disk, independent of its name.
final class FileNode {
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
    /// The open file that has the lock.
    weak var lock: AnyObject?
    /// The number of times that it is open.
    var openings = 0
    /// Its present or last name.
    var path: String
    /// Whether it is a directory, which a process has opened.
    let isDirectory: Bool

    init(_ path: String, isDirectory: Bool = false) {
        (self.path, self.isDirectory) = (path, isDirectory)
    }

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

    /// Loses the unsynced changes, except those that a crash keeps.
    func crash(keeping kept: some Sequence<Change>) {
        for change in kept { change.apply(to: &durable) }
        changes.removeAll()
        (content, lock, openings) = (durable, nil, 0)
    }
}

/// A change of the names on a simulated disk.
enum NameChange {
    case set(String, FileNode)
    case move(String, to: String, FileNode)
    case remove(String)

    func apply(to names: inout [String: FileNode]) {
        switch self {
        case .set(let path, let node): names[path] = node
        case .move(let path, let newPath, let node):
            names[path] = nil
            names[newPath] = node
        case .remove(let path): names[path] = nil
        }
    }
}
