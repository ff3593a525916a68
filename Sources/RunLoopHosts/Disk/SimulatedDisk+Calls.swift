internal import Glibc
internal import RunLoopSimulation
internal import RunLoopUnix

extension SimulatedDisk {
    func begin(_ operation: Operation) throws(Refusal) {
        if let duration = state.durations[operation] { simulation.spend(duration) }
        guard let reason = state.failures[operation] else { return }
        simulation.meet(.diskFailed)
        throw Refusal(reason)
    }

    /// Returns the reason why a user cannot make a file at a path.
    func reason(againstNewFileAt path: String, as user: ChildProcess.User = .root) -> Int32? {
        do throws(Refusal) {
            let end = try end(of: path, as: user)
            if try end.node != nil { return EEXIST }
            try end.directory.check(.changeNames, user)
            return nil
        } catch { return error.reason }
    }

    /// Returns the reason why a user does not find the file at a path.
    func reason(againstUseOf path: String, as user: ChildProcess.User = .root) -> Int32? {
        do throws(Refusal) {
            _ = try node(at: path, as: user)
            return nil
        } catch { return error.reason }
    }

    func exists(_ path: String, as user: ChildProcess.User = .root) -> Bool {
        reason(againstUseOf: path, as: user) == nil
    }

    func node(at path: String, as user: ChildProcess.User = .root) throws(Refusal) -> DiskNode {
        try end(of: path, as: user).found
    }

    func end(of path: String, as user: ChildProcess.User) throws(Refusal) -> PathEnd {
        try PathEnd(of: path, from: root, as: user)
    }

    /// Returns a directory that a user may use.
    func directory(
        at path: String, as user: ChildProcess.User, to use: Ownership.Use = .read
    ) throws(Refusal) -> DirectoryNode {
        guard let directory = try node(at: path, as: user) as? DirectoryNode else { throw Refusal(ENOTDIR) }
        try directory.check(use, user)
        return directory
    }

    /// Returns the reason why a user's process cannot have a directory as its working directory.
    func reason(againstWorkingIn path: String, as user: ChildProcess.User) -> Int32? {
        do throws(Refusal) {
            _ = try directory(at: path, as: user, to: .search)
            return nil
        } catch { return error.reason }
    }

    func setPermissions(_ permissions: UInt32, of node: DiskNode, as user: ChildProcess.User) throws(Refusal) {
        guard node.ownership.belongs(to: user) else { throw Refusal(EPERM) }
        node.ownership.permissions = permissions & 0o7777
        tell(IN_ATTRIB, node)
    }

    /// - Parameters:
    ///   - owner: the new owner; the largest number for the present one.
    ///   - group: the new group; the largest number for the present one.
    func setOwner(
        _ owner: UInt32, _ group: UInt32, of node: DiskNode, as user: ChildProcess.User
    ) throws(Refusal) {
        let changesOwner = owner != .max && owner != node.ownership.owner
        let mayChange = node.ownership.belongs(to: user) && !changesOwner && (group == .max || user.isIn(group))
        guard user.isRoot || mayChange else { throw Refusal(EPERM) }
        if owner != .max { node.ownership.owner = owner }
        if group != .max { node.ownership.group = group }
        tell(IN_ATTRIB, node)
    }

    // MARK: Files

    /// - Parameter flags: the flags of the system call.
    func open(_ path: String, flags: Int32, as user: ChildProcess.User) throws(Refusal) -> DiskNode {
        try begin(.open)
        let end = try end(of: path, as: user)
        let use: Ownership.Use =
            switch flags & O_ACCMODE {
            case O_RDONLY: .read
            case O_WRONLY: .write
            default: [.read, .write]
            }
        guard flags & O_CREAT != 0 else {
            let node = try end.found
            if node is DirectoryNode, flags & O_ACCMODE != O_RDONLY { throw Refusal(EISDIR) }
            try node.check(use, user)
            return node
        }
        if end.isName, end.hasSlash { throw Refusal(EISDIR) }
        guard let node = try end.node else {
            try end.directory.check(.changeNames, user)
            return create(FileNode(end.name, in: end.directory, Ownership(user, 0o600)))
        }
        if flags & O_EXCL != 0 { throw Refusal(EEXIST) }
        if node is DirectoryNode { throw Refusal(EISDIR) }
        try node.check(use, user)
        return node
    }

    private var size: Int { root.files.reduce(0) { $0 + $1.content.count } }

    /// The largest size of a file, as in ext4.
    private static let mostBytes = 1 << 44

    func write(_ bytes: UnsafeRawBufferPointer, to node: FileNode, at offset: Int) throws(Refusal) -> Int {
        guard offset >= 0 else { throw Refusal(EINVAL) }
        guard offset <= Self.mostBytes - bytes.count else { throw Refusal(EFBIG) }
        try begin(.write)
        var count = bytes.count
        if let capacity = state.capacity {
            let growth = max(0, offset + count - node.content.count)
            count -= max(0, size + growth - capacity)
            if count < bytes.count { simulation.meet(.diskFull) }
            guard count > 0 else { throw Refusal(ENOSPC) }
        }
        node.change(.write(Array(bytes.prefix(count)), at: offset))
        tell(IN_MODIFY, node)
        return count
    }

    func truncate(_ node: FileNode, to length: Int) throws(Refusal) {
        guard length >= 0 else { throw Refusal(EINVAL) }
        guard length <= Self.mostBytes else { throw Refusal(EFBIG) }
        try begin(.truncate)
        node.change(.truncate(length))
        tell(IN_MODIFY, node)
    }

    func sync(_ node: DiskNode) throws(Refusal) {
        // A slow sync is complete only at its end.
        try begin(node is DirectoryNode ? .syncDirectory : .sync)
        (node as? FileNode)?.sync()
        if node is DirectoryNode { state.journal.sync { $0.directory === node } }
    }

    func read(_ node: DiskNode) throws(Refusal) -> [UInt8] {
        try begin(.read)
        guard let file = node as? FileNode else { throw Refusal(EISDIR) }
        return file.content
    }
}
