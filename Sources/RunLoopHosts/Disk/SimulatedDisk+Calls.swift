internal import Glibc
internal import RunLoopSimulation

extension SimulatedDisk {
    private func begin(_ operation: Operation) -> Int32? {
        if let duration = state.durations[operation] { simulation.spend(duration) }
        return state.failures[operation]
    }

    /// The reason why no file can be at a path; `nil` if its parents are directories.
    private func reason(against path: String) -> Int32? {
        if path.isEmpty { return ENOENT }
        var directory = "/"
        for part in path.split(separator: "/").dropLast() {
            directory = Directories.name("\(directory)/\(part)")
            guard !state.directories.contains(directory) else { continue }
            return state.names[directory] == nil ? ENOENT : ENOTDIR
        }
        return nil
    }

    /// The reason why no file can be made at a path.
    func reason(againstNewFileAt path: String) -> Int32? { reason(against: path) ?? (exists(path) ? EEXIST : nil) }

    /// The reason why a process cannot use the file at a path.
    ///
    /// - Parameter ifDirectory: the reason if it is a directory.
    func reason(againstUseOf path: String, ifDirectory: Int32? = nil) -> Int32? {
        if let reason = reason(against: path) { return reason }
        if isDirectory(path) { return ifDirectory }
        guard node(at: path) != nil else { return ENOENT }
        return path.hasSuffix("/") ? ENOTDIR : nil
    }

    func exists(_ path: String) -> Bool { reason(againstUseOf: path) == nil }

    /// - Parameter flags: the flags of the system call.
    func open(_ path: String, flags: Int32) -> FileNode? {
        if let reason = begin(.open) ?? reason(againstOpening: path, flags) { return failure(reason) }
        let name = Directories.name(path)
        return isDirectory(name) ? FileNode(name, isDirectory: true) : state.names[name] ?? create(name)
    }

    private func reason(againstOpening path: String, _ flags: Int32) -> Int32? {
        guard flags & O_CREAT != 0 else {
            return reason(againstUseOf: path, ifDirectory: flags & O_ACCMODE == O_RDONLY ? nil : EISDIR)
        }
        if let reason = reason(against: path) { return reason }
        if path.hasSuffix("/") { return EISDIR }
        if flags & O_EXCL != 0 && exists(path) { return EEXIST }
        return isDirectory(path) ? EISDIR : nil
    }

    func isDirectory(_ path: String) -> Bool { state.directories.contains(path) }

    func node(at path: String) -> FileNode? { state.names[Directories.name(path)] }

    private func change(_ change: NameChange, in directory: String) {
        change.apply(to: &state.names)
        state.changes.append((directory, change))
    }

    private func create(_ path: String) -> FileNode {
        let node = FileNode(path)
        change(.set(path, node), in: Directories.parent(of: path))
        tell(IN_CREATE, at: path)
        return node
    }

    private var size: Int {
        var seen: Set<ObjectIdentifier> = []
        return state.names.values.reduce(0) { seen.insert(ObjectIdentifier($1)).inserted ? $0 + $1.content.count : $0 }
    }

    /// The largest size of a file, as in ext4.
    private static let mostBytes = 1 << 44

    func write(_ bytes: UnsafeRawBufferPointer, to node: FileNode, at offset: Int) -> Int {
        guard offset >= 0 else { return failure(EINVAL) }
        guard offset <= Self.mostBytes - bytes.count else { return failure(EFBIG) }
        if let reason = begin(.write) { return failure(reason) }
        var count = bytes.count
        if let capacity = state.capacity {
            let growth = max(0, offset + count - node.content.count)
            count -= max(0, size + growth - capacity)
            guard count > 0 else { return failure(ENOSPC) }
        }
        node.change(.write(Array(bytes.prefix(count)), at: offset))
        tell(IN_MODIFY, node)
        return count
    }

    func truncate(_ node: FileNode, to length: Int) -> Int32 {
        guard length >= 0 else { return failure(EINVAL) }
        guard length <= Self.mostBytes else { return failure(EFBIG) }
        if let reason = begin(.truncate) { return failure(reason) }
        node.change(.truncate(length))
        tell(IN_MODIFY, node)
        return 0
    }

    func sync(_ node: FileNode) -> Int32 {
        // A slow sync is complete only at its end.
        if let reason = begin(.sync) { return failure(reason) }
        node.sync()
        return 0
    }

    func read(_ node: FileNode) -> [UInt8]? {
        if let reason = begin(.read) ?? (node.isDirectory ? EISDIR : nil) { return failure(reason) }
        return node.content
    }

    func rename(_ path: String, to newPath: String) -> Int32 {
        // Directories stay where they are, as if they were in use. None can move into itself.
        let isWithin = Directories.name(newPath).hasPrefix(Directories.name(path) + "/")
        let reason =
            begin(.rename) ?? reason(againstUseOf: path, ifDirectory: isWithin ? EINVAL : EBUSY)
            ?? reason(against: newPath)
        if let reason { return failure(reason) }
        guard !isDirectory(newPath) else { return failure(EISDIR) }
        guard !newPath.hasSuffix("/") else { return failure(ENOTDIR) }
        let (path, newPath) = (Directories.name(path), Directories.name(newPath))
        guard path != newPath else { return 0 }
        let (node, replaced) = (state.names[path]!, state.names[newPath])
        change(.move(path, to: newPath, node), in: Directories.parent(of: newPath))
        tellOfMove(of: node, from: path, to: newPath, replacing: replaced)
        return 0
    }

    func remove(_ path: String) -> Int32 {
        let reason = begin(.remove) ?? reason(againstUseOf: path, ifDirectory: EISDIR)
        if let reason { return failure(reason) }
        let path = Directories.name(path)
        let node = state.names[path]!
        change(.remove(path), in: Directories.parent(of: path))
        tellOfRemoval(of: node, at: path)
        return 0
    }

    func syncDirectory(_ path: String) -> Int32 {
        if let reason = begin(.syncDirectory) ?? reason(against: path) { return failure(reason) }
        guard isDirectory(path) else { return failure(node(at: path) == nil ? ENOENT : ENOTDIR) }
        let name = Directories.name(path)
        for (directory, change) in state.changes where directory == name { change.apply(to: &state.durableNames) }
        state.changes.removeAll { $0.directory == name }
        return 0
    }
}
