/// A directory of a simulated disk.
final class DirectoryNode: DiskNode, Hashable {
    /// The directory's entries, as a process finds them.
    var names: [String: DiskNode] = [:]
    /// The entries that survive every crash.
    var durableNames: [String: DiskNode] = [:]

    var sortedNames: [String] { names.keys.sorted() }

    /// All files in the directory and in its directories, by path.
    var files: [FileNode] {
        sortedNames.flatMap { name in
            switch names[name] {
            case let directory as DirectoryNode: directory.files
            case let file as FileNode: [file]
            default: [FileNode]()
            }
        }
    }

    /// Loses the entries that are not durable, here and in the remaining directories.
    override func crash() {
        super.crash()
        names = durableNames
        for (name, node) in names {
            (node.name, node.directory) = (name, self)
            if let directory = node as? DirectoryNode { directory.crash() }
        }
    }

    static func == (one: DirectoryNode, other: DirectoryNode) -> Bool { one === other }
    func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
