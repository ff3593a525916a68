/// A file of a simulated disk, independent of its name.
final class FileNode {
    enum Change {
        case write([UInt8], at: Int)
        case truncate(Int)
    }

    /// The bytes that a reader finds.
    var content: [UInt8] = []
    /// The bytes that survive every crash.
    var durable: [UInt8] = []
    /// The changes since the last sync.
    var changes: [Change] = []
    /// The owner of the lock, if it is locked.
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
}

/// A receiver of the events on a disk.
protocol FileEventTaker: AnyObject {
    /// Takes an event of a name in a directory.
    ///
    /// - Parameter kind: one of the kinds of `inotify`.
    func take(_ kind: Int32, in directory: String, name: String, cookie: UInt32)
    /// Takes an event of a file, by whatever name.
    func take(_ kind: Int32, of node: FileNode)
}
