internal import CPrograms
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
            let end = try end(of: path, as: user, followsLast: false)
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

    func node(
        at path: String, as user: ChildProcess.User = .root, followsLast: Bool = true
    ) throws(Refusal) -> DiskNode {
        try end(of: path, as: user, followsLast: followsLast).found
    }

    func end(of path: String, as user: ChildProcess.User, followsLast: Bool) throws(Refusal) -> PathEnd {
        try PathEnd(of: path, from: root, as: user, followsLast: followsLast)
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
        node.times.changed = time
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
        node.times.changed = time
        tell(IN_ATTRIB, node)
    }

    /// Sets times of a node.
    ///
    /// - Parameters:
    ///   - read: the time of the last read; `nil` for the present one.
    ///   - written: the time of the last write; `nil` for the present one.
    ///   - isNow: `true` if both are the time that the clock shows, which all who may write can set.
    func setTimes(
        _ read: Int64?, _ written: Int64?, isNow: Bool, of node: DiskNode, as user: ChildProcess.User
    ) throws(Refusal) {
        if !node.ownership.belongs(to: user) {
            if isNow { try node.check(.write, user) } else { throw Refusal(EPERM) }
        }
        node.times = FileTimes(read: read ?? node.times.read, written: written ?? node.times.written, changed: time)
        tell(IN_ATTRIB, node)
    }

    // MARK: Files

    /// - Parameters:
    ///   - flags: the flags of the system call.
    ///   - permissions: the permissions of a new file.
    func open(
        _ path: String, flags: Int32, permissions: UInt32, as user: ChildProcess.User
    ) throws(Refusal) -> DiskNode {
        try begin(.open)
        let isNew = flags & O_CREAT != 0 && flags & O_EXCL != 0
        let end = try end(of: path, as: user, followsLast: !isNew && flags & O_NOFOLLOW == 0)
        let use: Ownership.Use =
            switch flags & O_ACCMODE {
            case O_RDONLY: .read
            case O_WRONLY: .write
            default: [.read, .write]
            }
        if flags & Self.unnamed == Self.unnamed { return try openUnnamed(in: end.found, permissions, as: user) }
        if flags & O_CREAT != 0 {
            if flags & O_DIRECTORY != 0 { throw Refusal(EINVAL) }
            if end.isName, end.hasSlash { throw Refusal(EISDIR) }
            if try end.node == nil {
                try end.directory.check(.changeNames, user)
                return create(FileNode(end.name, in: end.directory, Ownership(user, permissions)))
            }
            if isNew { throw Refusal(EEXIST) }
        }
        let node = try end.found
        let isDirectory = node is DirectoryNode
        if isDirectory, flags & O_ACCMODE != O_RDONLY || flags & O_CREAT != 0 { throw Refusal(EISDIR) }
        if !isDirectory, flags & O_DIRECTORY != 0 { throw Refusal(ENOTDIR) }
        if node is LinkNode { throw Refusal(ELOOP) }
        try node.check(use, user)
        return node
    }

    /// The flags of a file without a name, `O_TMPFILE`.
    private static let unnamed: Int32 = 0o20_000_000 | O_DIRECTORY

    /// Makes a file that has no name, and which goes with its last descriptor.
    private func openUnnamed(
        in node: DiskNode, _ permissions: UInt32, as user: ChildProcess.User
    ) throws(Refusal) -> DiskNode {
        guard let directory = node as? DirectoryNode else { throw Refusal(ENOTDIR) }
        try directory.check(.changeNames, user)
        let file = FileNode("(deleted)", in: directory, Ownership(user, permissions))
        file.times = FileTimes(read: time, written: time, changed: time)
        directory.openings += 1
        return file
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
        change(node, .write(Array(bytes.prefix(count)), at: offset))
        return count
    }

    func truncate(_ node: FileNode, to length: Int) throws(Refusal) {
        guard length >= 0 else { throw Refusal(EINVAL) }
        guard length <= Self.mostBytes else { throw Refusal(EFBIG) }
        try begin(.truncate)
        change(node, .truncate(length))
    }

    private func change(_ node: FileNode, _ change: FileNode.Change) {
        node.times.noteWriting(at: time)
        node.change(change)
        tell(IN_MODIFY, node)
    }

    /// Makes room for a part of a file, as `fallocate` does with a mode.
    func allocate(_ node: FileNode, _ mode: Int32, _ offset: Int, _ length: Int) throws(Refusal) {
        guard offset >= 0, length > 0 else { throw Refusal(EINVAL) }
        guard offset <= Self.mostBytes - length else { throw Refusal(EFBIG) }
        try begin(.write)
        let (size, end) = (node.content.count, offset + length)
        let keepsSize = Int(mode) & rlk_allocate_keeps_size != 0
        let kind = Int(mode) & ~rlk_allocate_keeps_size
        switch kind {
        case 0, rlk_allocate_zeros:
            if let capacity = state.capacity, self.size + max(0, end - size) > capacity { throw Refusal(ENOSPC) }
        case rlk_allocate_hole where keepsSize: break
        default: throw Refusal(EOPNOTSUPP)
        }
        let zeros = kind == 0 ? 0 : min(end, size) - offset
        if zeros > 0 { change(node, .write([UInt8](repeating: 0, count: zeros), at: offset)) }
        if !keepsSize, end > size { change(node, .truncate(end)) }
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
        file.times.noteReading(at: time)
        return file.content
    }
}
