internal import Glibc

// The errors, and which of several comes first, are those of Linux.
extension SimulatedDisk {
    private func change(_ change: NameChange) {
        change.apply()
        state.journal.append(change)
    }

    /// Gives a new node its name.
    func create<Node: DiskNode>(_ node: Node) -> Node {
        let place = NameChange.Place(directory: node.directory!, name: node.name)
        change(NameChange(entries: [(place, node)], takesDirectory: false))
        tellDirectory(IN_CREATE, node)
        return node
    }

    func createDirectory(_ path: String) throws(Refusal) {
        try begin(.createDirectory)
        let end = try end(of: path)
        guard try end.node == nil else { throw Refusal(EEXIST) }
        _ = create(DirectoryNode(end.name, in: end.directory))
    }

    func contentsOfDirectory(_ path: String) throws(Refusal) -> [String] {
        try begin(.list)
        guard let directory = try node(at: path) as? DirectoryNode else { throw Refusal(ENOTDIR) }
        return directory.sortedNames
    }

    // MARK: Removing

    func remove(_ path: String) throws(Refusal) {
        try begin(.remove)
        let end = try end(of: path)
        guard end.isName else { throw Refusal(EISDIR) }
        guard let node = try end.node else { throw Refusal(ENOENT) }
        if node is DirectoryNode { throw Refusal(EISDIR) }
        if end.hasSlash { throw Refusal(ENOTDIR) }
        remove(node, at: end.place)
    }

    func removeDirectory(_ path: String) throws(Refusal) {
        try begin(.remove)
        let end = try end(of: path)
        guard end.isName else { throw Refusal(end.name == ".." ? ENOTEMPTY : end.name == "." ? EINVAL : EBUSY) }
        guard let node = try end.node else { throw Refusal(ENOENT) }
        guard let directory = node as? DirectoryNode else { throw Refusal(ENOTDIR) }
        guard directory.names.isEmpty else { throw Refusal(ENOTEMPTY) }
        remove(directory, at: end.place)
    }

    func remove(_ node: DiskNode, at place: NameChange.Place) {
        change(NameChange(entries: [(place, nil)], takesDirectory: node is DirectoryNode))
        tellOfRemoval(of: node)
    }

    // MARK: Renaming

    func rename(_ path: String, to newPath: String) throws(Refusal) {
        try begin(.rename)
        let (old, new) = (try end(of: path), try end(of: newPath))
        guard old.isName, new.isName else { throw Refusal(EBUSY) }
        guard let node = try old.node else { throw Refusal(ENOENT) }
        if !(node is DirectoryNode), old.hasSlash || new.hasSlash { throw Refusal(ENOTDIR) }
        if node.contains(new.directory) { throw Refusal(EINVAL) }
        let replaced = try new.node
        if let replaced, replaced.contains(old.directory) { throw Refusal(ENOTEMPTY) }
        guard replaced !== node else { return }
        if let replaced { try check(replaced, madeRoomFor: node) }
        move(node, from: old.place, to: new.place)
    }

    private func check(_ replaced: DiskNode, madeRoomFor node: DiskNode) throws(Refusal) {
        switch (node is DirectoryNode, replaced as? DirectoryNode) {
        case (true, nil): throw Refusal(ENOTDIR)
        case (false, _?): throw Refusal(EISDIR)
        case (_, let directory?) where !directory.names.isEmpty: throw Refusal(ENOTEMPTY)
        default: return
        }
    }

    /// Moves a node to another place, where there is none, or one that makes room for it.
    func move(_ node: DiskNode, from old: NameChange.Place, to new: NameChange.Place) {
        let replaced = new.directory.names[new.name]
        change(NameChange(entries: [(old, nil), (new, node)], takesDirectory: node is DirectoryNode))
        (node.name, node.directory) = (new.name, new.directory)
        tellOfMove(of: node, from: old, replacing: replaced)
    }
}

extension DiskNode {
    /// Whether a directory is this one, or lies in it.
    fileprivate func contains(_ directory: DirectoryNode) -> Bool {
        var next: DirectoryNode? = directory
        while let present = next, present !== self { next = present.directory }
        return next != nil
    }
}
