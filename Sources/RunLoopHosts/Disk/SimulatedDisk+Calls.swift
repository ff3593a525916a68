internal import Glibc
internal import RunLoopSimulation

extension SimulatedDisk {
    func begin(_ operation: Operation) throws(Refusal) {
        if let duration = state.durations[operation] { simulation.spend(duration) }
        if let reason = state.failures[operation] { throw Refusal(reason) }
    }

    /// The reason why no file can be made at a path.
    func reason(againstNewFileAt path: String) -> Int32? {
        do throws(Refusal) {
            return try end(of: path).node == nil ? nil : EEXIST
        } catch { return error.reason }
    }

    /// The reason why a process cannot use the file at a path.
    func reason(againstUseOf path: String) -> Int32? {
        do throws(Refusal) {
            _ = try node(at: path)
            return nil
        } catch { return error.reason }
    }

    func exists(_ path: String) -> Bool { reason(againstUseOf: path) == nil }
    func isDirectory(_ path: String) -> Bool { (try? node(at: path)) is DirectoryNode }
    func node(at path: String) throws(Refusal) -> DiskNode { try end(of: path).found }
    func end(of path: String) throws(Refusal) -> PathEnd { try PathEnd(of: path, from: root) }

    // MARK: Files

    /// - Parameter flags: the flags of the system call.
    func open(_ path: String, flags: Int32) throws(Refusal) -> DiskNode {
        try begin(.open)
        let end = try end(of: path)
        guard flags & O_CREAT != 0 else {
            let node = try end.found
            if node is DirectoryNode, flags & O_ACCMODE != O_RDONLY { throw Refusal(EISDIR) }
            return node
        }
        if end.isName, end.hasSlash { throw Refusal(EISDIR) }
        guard let node = try end.node else { return create(FileNode(end.name, in: end.directory)) }
        if flags & O_EXCL != 0 { throw Refusal(EEXIST) }
        if node is DirectoryNode { throw Refusal(EISDIR) }
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
        if let directory = node as? DirectoryNode { return try syncDirectory(directory) }
        // A slow sync is complete only at its end.
        try begin(.sync)
        (node as? FileNode)?.sync()
    }

    func read(_ node: DiskNode) throws(Refusal) -> [UInt8] {
        try begin(.read)
        guard let file = node as? FileNode else { throw Refusal(EISDIR) }
        return file.content
    }

    func syncDirectory(_ path: String) throws(Refusal) {
        guard let directory = try node(at: path) as? DirectoryNode else { throw Refusal(ENOTDIR) }
        try syncDirectory(directory)
    }

    private func syncDirectory(_ directory: DirectoryNode) throws(Refusal) {
        try begin(.syncDirectory)
        state.journal.sync { $0.directory === directory }
    }
}
