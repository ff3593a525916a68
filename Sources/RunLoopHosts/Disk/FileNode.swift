/// A file of a simulated disk, whatever its name is.
final class FileNode {
    enum Change {
        case write([UInt8], at: Int)
        case truncate(Int)
    }

    /// What whoever looks finds.
    var content: [UInt8] = []
    /// What a crash leaves, whatever happens.
    var durable: [UInt8] = []
    /// What has changed since.
    var changes: [Change] = []
    /// Who keeps others away.
    weak var lock: AnyObject?
    /// How often it is open.
    var openings = 0
    /// Its name, or what that was last.
    var path: String
    /// It is a directory, which a process has opened.
    let isDirectory: Bool

    init(_ path: String, isDirectory: Bool = false) {
        (self.path, self.isDirectory) = (path, isDirectory)
    }
}

/// Who is told what happens on a disk.
protocol FileEventTaker: AnyObject {
    /// Something has happened to a name in a directory.
    ///
    /// - Parameter kind: one of those of `inotify`.
    func take(_ kind: Int32, in directory: String, name: String, cookie: UInt32)
    /// Something has happened to a file, by whatever name.
    func take(_ kind: Int32, of node: FileNode)
}
