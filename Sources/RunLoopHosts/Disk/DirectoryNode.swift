/// A directory of a simulated disk.
final class DirectoryNode: DiskNode, Hashable {
    /// The directory's entries, as a process finds them.
    var names: [String: DiskNode] = [:]
    /// The entries that survive every crash.
    var durableNames: [String: DiskNode] = [:]

    var sortedNames: [String] { names.keys.sorted() }

    /// The paths of all files in the directory and in its directories, and the files; one with several names comes
    /// with each.
    var filesByPath: [(path: String, file: FileNode)] {
        let start = path.hasSuffix("/") ? path : path + "/"
        return sortedNames.flatMap { name in
            switch names[name] {
            case let directory as DirectoryNode: directory.filesByPath
            case let file as FileNode: [(start + name, file)]
            default: [(path: String, file: FileNode)]()
            }
        }
    }

    /// All files in the directory and in its directories, by path.
    var files: [FileNode] {
        var found: Set<ObjectIdentifier> = []
        return filesByPath.map(\.file).filter { found.insert(ObjectIdentifier($0)).inserted }
    }

    /// Returns a place of a node, in the directory or in its directories.
    func place(of node: DiskNode) -> NameChange.Place? {
        for name in sortedNames {
            if names[name] === node { return NameChange.Place(directory: self, name: name) }
            if let place = (names[name] as? DirectoryNode)?.place(of: node) { return place }
        }
        return nil
    }

    /// Forgets the names of all nodes that a crash keeps.
    func forgetNames() {
        for node in durableNames.values {
            node.nameCount = 0
            (node as? DirectoryNode)?.forgetNames()
        }
    }

    /// Loses the entries that are not durable, here and in the remaining directories.
    override func crash() {
        super.crash()
        names = durableNames
        for name in sortedNames.reversed() {
            let node = names[name]!
            (node.name, node.directory) = (name, self)
            node.nameCount += 1
            if let directory = node as? DirectoryNode { directory.crash() }
        }
    }

    static func == (one: DirectoryNode, other: DirectoryNode) -> Bool { one === other }
    func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
