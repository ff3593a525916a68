internal import CPrograms
internal import Glibc
internal import RunLoopUnix

// The errors, and their precedence, follow Linux.
extension SimulatedDisk {
    private func change(_ change: NameChange) {
        for (place, node) in change.entries {
            place.directory.names[place.name] = node
            place.directory.times.noteWriting(at: time)
            node?.times.changed = time
        }
        state.journal.append(change)
    }

    /// Gives a new node its name.
    func create<Node: DiskNode>(_ node: Node) -> Node {
        node.times = FileTimes(read: time, written: time, changed: time)
        node.nameCount = 1
        change(NameChange(entries: [(node.place!, node)], takesDirectory: false))
        tellDirectory(IN_CREATE, node)
        return node
    }

    func createDirectory(_ path: String, permissions: UInt32, as user: ChildProcess.User) throws(Refusal) {
        try begin(.createDirectory)
        let end = try end(of: path, as: user, followsLast: false)
        guard try end.node == nil else { throw Refusal(EEXIST) }
        try end.directory.check(.changeNames, user)
        _ = create(DirectoryNode(end.name, in: end.directory, Ownership(user, permissions)))
    }

    func createLink(_ path: String, to target: String, as user: ChildProcess.User) throws(Refusal) {
        try begin(.open)
        let end = try end(of: path, as: user, followsLast: false)
        guard try end.node == nil else { throw Refusal(EEXIST) }
        if end.hasSlash || target.isEmpty { throw Refusal(ENOENT) }
        try end.directory.check(.changeNames, user)
        _ = create(LinkNode(end.name, in: end.directory, to: target, of: user))
    }

    /// Gives a node another name.
    func addName(_ path: String, of node: DiskNode, as user: ChildProcess.User) throws(Refusal) {
        try begin(.rename)
        let end = try end(of: path, as: user, followsLast: false)
        guard try end.node == nil else { throw Refusal(EEXIST) }
        if end.hasSlash { throw Refusal(ENOENT) }
        try end.directory.check(.changeNames, user)
        if node is DirectoryNode { throw Refusal(EPERM) }
        // One that had no name counted as an opening of its directory.
        if node.nameCount == 0 { node.directory?.openings -= 1 }
        node.nameCount += 1
        (node.name, node.directory) = (end.name, end.directory)
        change(NameChange(entries: [(end.place, node)], takesDirectory: false))
        tell(IN_ATTRIB, node)
        tellDirectory(IN_CREATE, node)
    }

    func contentsOfDirectory(_ path: String, as user: ChildProcess.User) throws(Refusal) -> [String] {
        try begin(.list)
        return try directory(at: path, as: user).sortedNames
    }

    // MARK: Removing

    func remove(_ path: String, as user: ChildProcess.User) throws(Refusal) {
        try begin(.remove)
        let end = try end(of: path, as: user, followsLast: false)
        guard end.isName else { throw Refusal(EISDIR) }
        guard let node = try end.node else { throw Refusal(ENOENT) }
        if end.hasSlash { throw Refusal(node is DirectoryNode ? EISDIR : ENOTDIR) }
        try check(user, mayTake: node, from: end.directory)
        if node is DirectoryNode { throw Refusal(EISDIR) }
        remove(node, at: end.place)
    }

    func removeDirectory(_ path: String, as user: ChildProcess.User) throws(Refusal) {
        try begin(.remove)
        let end = try end(of: path, as: user, followsLast: false)
        guard end.isName else { throw Refusal(end.name == ".." ? ENOTEMPTY : end.name == "." ? EINVAL : EBUSY) }
        guard let node = try end.node else { throw Refusal(ENOENT) }
        try check(user, mayTake: node, from: end.directory)
        guard let directory = node as? DirectoryNode else { throw Refusal(ENOTDIR) }
        guard directory.names.isEmpty else { throw Refusal(ENOTEMPTY) }
        remove(directory, at: end.place)
    }

    /// Throws if a user may not take a name from a node.
    private func check(
        _ user: ChildProcess.User, mayTake node: DiskNode, from directory: DirectoryNode
    ) throws(Refusal) {
        try directory.check(.changeNames, user)
        let owns = node.ownership.belongs(to: user) || directory.ownership.belongs(to: user)
        if directory.ownership.isSticky, !owns { throw Refusal(EPERM) }
    }

    func remove(_ node: DiskNode, at place: NameChange.Place) {
        change(NameChange(entries: [(place, nil)], takesDirectory: node is DirectoryNode))
        (node.name, node.directory) = (place.name, place.directory)
        node.times.changed = time
        node.nameCount -= 1
        tellOfRemoval(of: node)
        findName(of: node)
    }

    /// Finds one of the names of a node that has lost one.
    private func findName(of node: DiskNode) {
        guard node.nameCount > 0, !node.isNamed, let place = root.place(of: node) else { return }
        (node.name, node.directory) = (place.name, place.directory)
    }

    // MARK: Renaming

    /// - Parameter flags: those of `renameat2`.
    func rename(
        _ path: String, to newPath: String, flags: Int = 0, as user: ChildProcess.User
    ) throws(Refusal) {
        let (keeps, exchanges) = (flags == rlk_rename_keeps, flags == rlk_rename_exchanges)
        if flags != 0, !keeps, !exchanges { throw Refusal(EINVAL) }
        try begin(.rename)
        let old = try end(of: path, as: user, followsLast: false)
        let new = try end(of: newPath, as: user, followsLast: false)
        guard old.isName, new.isName else { throw Refusal(EBUSY) }
        guard let node = try old.node else { throw Refusal(ENOENT) }
        if keeps, try new.node != nil { throw Refusal(EEXIST) }
        if exchanges { return try exchange(node, at: old, new, as: user) }
        if !(node is DirectoryNode), old.hasSlash || new.hasSlash { throw Refusal(ENOTDIR) }
        if node.contains(new.directory) { throw Refusal(EINVAL) }
        let replaced = try new.node
        if let replaced, replaced.contains(old.directory) { throw Refusal(ENOTEMPTY) }
        guard replaced !== node else { return }
        try check(user, mayTake: node, from: old.directory)
        if let replaced {
            try check(user, mayTake: replaced, from: new.directory)
            try check(replaced, isOfTheKindOf: node)
        } else {
            try new.directory.check(.changeNames, user)
        }
        // The `..` of the directory changes.
        if node is DirectoryNode, old.directory !== new.directory { try node.check(.write, user) }
        if let directory = replaced as? DirectoryNode, !directory.names.isEmpty { throw Refusal(ENOTEMPTY) }
        move(node, from: old.place, to: new.place)
    }

    /// Exchanges the nodes of two names.
    private func exchange(
        _ node: DiskNode, at old: PathEnd, _ new: PathEnd, as user: ChildProcess.User
    ) throws(Refusal) {
        let other = try new.found
        if node.contains(new.directory) || other.contains(old.directory) { throw Refusal(EINVAL) }
        try check(user, mayTake: node, from: old.directory)
        try check(user, mayTake: other, from: new.directory)
        let takesDirectory = node is DirectoryNode || other is DirectoryNode
        change(NameChange(entries: [(old.place, other), (new.place, node)], takesDirectory: takesDirectory))
        (node.name, node.directory) = (new.name, new.directory)
        (other.name, other.directory) = (old.name, old.directory)
        tellOfMove(of: node, from: old.place, replacing: nil)
        tellOfMove(of: other, from: new.place, replacing: nil)
    }

    private func check(_ replaced: DiskNode, isOfTheKindOf node: DiskNode) throws(Refusal) {
        switch (node is DirectoryNode, replaced is DirectoryNode) {
        case (true, false): throw Refusal(ENOTDIR)
        case (false, true): throw Refusal(EISDIR)
        default: return
        }
    }

    /// Moves a node to another place, which is free or whose node makes room for it.
    func move(_ node: DiskNode, from old: NameChange.Place, to new: NameChange.Place) {
        let replaced = new.directory.names[new.name]
        change(NameChange(entries: [(old, nil), (new, node)], takesDirectory: node is DirectoryNode))
        (node.name, node.directory) = (new.name, new.directory)
        if let replaced {
            replaced.nameCount -= 1
            replaced.times.changed = time
            findName(of: replaced)
        }
        tellOfMove(of: node, from: old, replacing: replaced)
    }
}

extension DiskNode {
    /// Returns `true` if `directory` is this node, or lies in it.
    fileprivate func contains(_ directory: DirectoryNode) -> Bool {
        var next: DirectoryNode? = directory
        while let present = next, present !== self { next = present.directory }
        return next != nil
    }
}
