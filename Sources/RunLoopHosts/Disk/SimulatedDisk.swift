internal import Glibc
internal import RunLoopCore
internal import RunLoopSimulation
internal import RunLoopUnix

/// The disk of a ``SimulatedHost``. A crash of the host may lose or tear bytes that were written and not synced, as the
/// simulation's seed decides; synced bytes stay. The disk can be full, slow and broken.
///
/// It has the usual directories of a Linux system, `/data` and `/state`, and those in which a test has installed
/// something. Files cannot be opened elsewhere, as on a real disk. ``/RunLoopUnix/Disk`` leads to it in the programs of
/// its host. Files that are opened otherwise are the real ones. It outlives processes and crashes. Use it from the
/// simulation's threads; it is `Sendable`.
public final class SimulatedDisk: Sendable {
    /// An operation of a disk.
    public enum Operation: Sendable, Hashable, CaseIterable {
        case open, write, truncate, sync, read, rename, remove, syncDirectory
    }

    private enum NameChange {
        case set(String, FileNode)
        case move(String, to: String, FileNode)
        case remove(String)
    }

    private struct State {
        var directories = Directories()
        var names: [String: FileNode] = [:]
        var durableNames: [String: FileNode] = [:]
        var changes: [(directory: String, change: NameChange)] = []
        var capacity: Int?
        var failures: [Operation: Int32] = [:]
        var durations: [Operation: Duration] = [:]
        var fileEventLimit = 16_384
        var queues: [any FileEventTaker] = []
        var lastCookie: UInt32 = 0
    }

    // Unsafe, but only the thread whose turn it is uses them.
    private nonisolated(unsafe) var state = State()
    private nonisolated(unsafe) let surroundings: Surroundings

    /// The name of the machine.
    private let machine: String

    init(of machine: String, _ surroundings: Surroundings) {
        self.machine = machine
        self.surroundings = surroundings
    }

    // MARK: For tests

    /// The largest number of bytes in all files together; `nil`, the default, sets no limit. A write beyond it fails
    /// with `ENOSPC`.
    public var capacity: Int? {
        get { state.capacity }
        set { state.capacity = newValue }
    }

    /// Makes an operation fail from now on, with that `errno`; with `nil` it works again.
    public func fail(_ operation: Operation, errno: Int32?) {
        state.failures[operation] = errno
    }

    /// Makes an operation take so long from now on, while it blocks its thread; no time unless set.
    public func slow(_ operation: Operation, by duration: Duration) {
        state.durations[operation] = duration
    }

    /// The paths of all files, sorted.
    public var paths: [String] { state.names.keys.sorted() }

    /// The bytes that a process would read in a file; `nil` if there is no such file.
    public func contents(of path: String) -> [UInt8]? { node(at: path)?.content }

    /// Makes a directory and its ancestors, durably. Does nothing if it exists.
    public func installDirectory(at path: String) {
        state.directories.add(path)
    }

    /// Writes a file, durably, like a person at the keyboard, and makes its missing directories.
    public func install(_ contents: [UInt8], at path: String) {
        let path = Directories.name(path)
        state.directories.add(Directories.parent(of: path))
        let node = state.names[path] ?? FileNode(path)
        (node.content, node.durable, node.changes) = (contents, contents, [])
        let isNew = state.names[path] == nil
        (state.names[path], state.durableNames[path]) = (node, node)
        if isNew { tell(IN_CREATE, at: path) }
        if !isNew || !contents.isEmpty { tell(IN_MODIFY, node) }
        tell(IN_CLOSE_WRITE, node)
    }

    /// Removes a file, durably. Does nothing if there is none.
    public func removeFile(at path: String) {
        let path = Directories.name(path)
        guard let node = state.names[path] else { return }
        (state.names[path], state.durableNames[path]) = (nil, nil)
        tellOfRemoval(of: node, at: path)
    }

    /// Renames a file, durably, and replaces a file that had the new name. Does nothing if there is no such file.
    public func moveFile(at path: String, to newPath: String) {
        let (path, newPath) = (Directories.name(path), Directories.name(newPath))
        state.directories.add(Directories.parent(of: newPath))
        guard let node = state.names[path], path != newPath else { return }
        let replaced = state.names[newPath]
        let move = NameChange.move(path, to: newPath, node)
        Self.apply(move, to: &state.names)
        Self.apply(move, to: &state.durableNames)
        tellOfMove(of: node, from: path, to: newPath, replacing: replaced)
    }

    /// The largest number of events that wait for a file watcher of the host; 16,384 unless set. Later events are lost,
    /// and the watcher learns of an overflow.
    public var fileEventLimit: Int {
        get { state.fileEventLimit }
        set { state.fileEventLimit = newValue }
    }

    // MARK: Operations

    private func begin(_ operation: Operation) -> Int32? {
        if let duration = state.durations[operation] { surroundings.simulation.spend(duration) }
        return state.failures[operation]
    }

    private func fail(_ reason: Int32) -> Int32 {
        errno = reason
        return -1
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

    /// Whether a file may be made at a path.
    ///
    /// - Returns: the reason against it, if any.
    func check(newFileAt path: String) -> Int32? {
        if let reason = reason(against: path) { return reason }
        return exists(path) ? EEXIST : nil
    }

    /// - Parameter flags: the flags of the system call.
    func open(_ path: String, flags: Int32) -> FileNode? {
        let name = Directories.name(path)
        if let reason = begin(.open) ?? reason(against: path) ?? reason(against: name, path, flags) {
            errno = reason
            return nil
        }
        return isDirectory(name) ? FileNode(name, isDirectory: true) : state.names[name] ?? create(name)
    }

    private func reason(against name: String, _ path: String, _ flags: Int32) -> Int32? {
        let creates = flags & O_CREAT != 0
        if creates && path.hasSuffix("/") { return EISDIR }
        if creates && flags & O_EXCL != 0 && exists(name) { return EEXIST }
        if isDirectory(name) { return creates || flags & O_ACCMODE != O_RDONLY ? EISDIR : nil }
        if state.names[name] == nil { return creates ? nil : ENOENT }
        return path.hasSuffix("/") ? ENOTDIR : nil
    }

    func isDirectory(_ path: String) -> Bool { state.directories.contains(path) }

    /// - Parameter owner: the open file that takes the lock.
    func lock(_ node: FileNode, by owner: AnyObject) -> Int32 {
        guard node.lock ?? owner === owner else { return fail(EWOULDBLOCK) }
        node.lock = owner
        return 0
    }

    func unlock(_ node: FileNode, by owner: AnyObject) {
        if node.lock === owner { node.lock = nil }
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
        guard offset >= 0 else { return Int(fail(EINVAL)) }
        guard offset <= Self.mostBytes - bytes.count else { return Int(fail(EFBIG)) }
        if let reason = begin(.write) { return Int(fail(reason)) }
        var count = bytes.count
        if let capacity = state.capacity {
            let growth = max(0, offset + count - node.content.count)
            count -= max(0, size + growth - capacity)
            guard count > 0 else { return Int(fail(ENOSPC)) }
        }
        let written = Array(bytes.prefix(count))
        Self.write(written, to: &node.content, at: offset)
        node.changes.append(.write(written, at: offset))
        tell(IN_MODIFY, node)
        return count
    }

    func truncate(_ node: FileNode, to length: Int) -> Int32 {
        guard length >= 0 else { return fail(EINVAL) }
        guard length <= Self.mostBytes else { return fail(EFBIG) }
        if let reason = begin(.truncate) { return fail(reason) }
        Self.truncate(&node.content, to: length)
        node.changes.append(.truncate(length))
        tell(IN_MODIFY, node)
        return 0
    }

    func sync(_ node: FileNode) -> Int32 {
        // A slow sync is complete only at its end.
        if let reason = begin(.sync) { return fail(reason) }
        node.durable = node.content
        node.changes.removeAll()
        return 0
    }

    func read(_ node: FileNode) -> [UInt8]? {
        if let reason = begin(.read) ?? (node.isDirectory ? EISDIR : nil) {
            errno = reason
            return nil
        }
        return node.content
    }

    func exists(_ path: String) -> Bool {
        guard reason(against: path) == nil else { return false }
        return isDirectory(path) || !path.hasSuffix("/") && node(at: path) != nil
    }

    /// The reason why a process cannot use the file at a path.
    ///
    /// - Parameter ifDirectory: the reason if it is a directory.
    func reason(againstUseOf path: String, ifDirectory: Int32? = nil) -> Int32? {
        if let reason = reason(against: path) { return reason }
        if isDirectory(path) { return ifDirectory }
        guard node(at: path) != nil else { return ENOENT }
        return path.hasSuffix("/") ? ENOTDIR : nil
    }

    func rename(_ path: String, to newPath: String) -> Int32 {
        // Directories stay where they are, as if they were in use. None can move into itself.
        let isWithin = Directories.name(newPath).hasPrefix(Directories.name(path) + "/")
        let reason =
            begin(.rename) ?? reason(againstUseOf: path, ifDirectory: isWithin ? EINVAL : EBUSY)
            ?? reason(against: newPath)
        if let reason { return fail(reason) }
        guard !isDirectory(newPath) else { return fail(EISDIR) }
        guard !newPath.hasSuffix("/") else { return fail(ENOTDIR) }
        let (path, newPath) = (Directories.name(path), Directories.name(newPath))
        guard path != newPath else { return 0 }
        let (node, replaced) = (state.names[path]!, state.names[newPath])
        change(.move(path, to: newPath, node), in: Directories.parent(of: newPath))
        tellOfMove(of: node, from: path, to: newPath, replacing: replaced)
        return 0
    }

    func remove(_ path: String) -> Int32 {
        let reason = begin(.remove) ?? reason(againstUseOf: path, ifDirectory: EISDIR)
        if let reason { return fail(reason) }
        let path = Directories.name(path)
        let node = state.names[path]!
        change(.remove(path), in: Directories.parent(of: path))
        tellOfRemoval(of: node, at: path)
        return 0
    }

    func syncDirectory(_ path: String) -> Int32 {
        if let reason = begin(.syncDirectory) ?? reason(against: path) { return fail(reason) }
        guard isDirectory(path) else { return fail(node(at: path) == nil ? ENOENT : ENOTDIR) }
        let name = Directories.name(path)
        for (directory, change) in state.changes where directory == name { Self.apply(change, to: &state.durableNames) }
        state.changes.removeAll { $0.directory == name }
        return 0
    }

    func close(_ node: FileNode, isWritable: Bool, by owner: AnyObject) {
        unlock(node, by: owner)
        node.openings -= 1
        if isWritable { tell(IN_CLOSE_WRITE, node) }
        tellIfGone(node)
    }

    // MARK: File events

    func node(at path: String) -> FileNode? { state.names[Directories.name(path)] }

    func add(_ queue: any FileEventTaker) {
        state.queues.append(queue)
    }

    func remove(_ queue: any FileEventTaker) {
        state.queues.removeAll { $0 === queue }
    }

    /// Reports an event of a name.
    private func tell(_ kind: Int32, at path: String, cookie: UInt32 = 0) {
        guard !state.queues.isEmpty else { return }
        let name = String(path.split(separator: "/").last!)
        let directory = Directories.parent(of: path)
        for queue in state.queues { queue.take(kind, in: directory, name: name, cookie: cookie) }
    }

    /// Reports an event of the content of a file.
    private func tell(_ kind: Int32, _ node: FileNode) {
        guard !state.queues.isEmpty else { return }
        tell(kind, at: node.path)
        tellFile(kind, node)
    }

    private func tellFile(_ kind: Int32, _ node: FileNode) {
        for queue in state.queues { queue.take(kind, of: node) }
    }

    private func tellOfMove(of node: FileNode, from path: String, to newPath: String, replacing replaced: FileNode?) {
        node.path = newPath
        state.lastCookie += 1
        tell(IN_MOVED_FROM, at: path, cookie: state.lastCookie)
        tell(IN_MOVED_TO, at: newPath, cookie: state.lastCookie)
        let replaced = replaced === node ? nil : replaced
        if let replaced { tellFile(IN_ATTRIB, replaced) }
        tellFile(IN_MOVE_SELF, node)
        if let replaced { tellIfGone(replaced) }
    }

    private func tellOfRemoval(of node: FileNode, at path: String) {
        tellFile(IN_ATTRIB, node)
        tellIfGone(node)
        tell(IN_DELETE, at: path)
    }

    /// Reports the end of a file, if it has no name any more and is not open.
    private func tellIfGone(_ node: FileNode) {
        guard node.openings == 0, state.names[node.path] !== node else { return }
        tellFile(IN_DELETE_SELF, node)
    }

    // MARK: A crash

    /// Loses the host's power: of the unsynced changes some stay, some are lost, and some stay in part.
    func crash() {
        // Names change in the order of the journal.
        let kept = outcome("keeps names", usual: state.changes.count, in: 0...state.changes.count)
        for (_, change) in state.changes.prefix(kept) {
            Self.apply(change, to: &state.durableNames)
        }
        state.changes.removeAll()
        state.queues.removeAll()
        state.names = state.durableNames
        var seen: Set<ObjectIdentifier> = []
        for path in state.names.keys.sorted() {
            let node = state.names[path]!
            node.path = path
            guard seen.insert(ObjectIdentifier(node)).inserted else { continue }
            settle(node)
        }
    }

    private func outcome(
        _ what: @autoclosure () -> String, usual: Int, in range: ClosedRange<Int>, drawn: Int? = nil
    ) -> Int {
        surroundings.outcome(drawn ?? surroundings.random(in: range), on: machine, what(), usual: usual, in: range)
    }

    private func settle(_ node: FileNode) {
        let kept = outcome("keeps changes of \(node.path)", usual: node.changes.count, in: 0...node.changes.count)
        for change in node.changes.prefix(kept) { Self.apply(change, to: &node.durable) }
        if kept < node.changes.count, case .write(let bytes, let offset) = node.changes[kept], !bytes.isEmpty {
            // The length may be on the disk before the bytes are.
            let torn = outcome("tears \(node.path)", usual: 0, in: 0...(bytes.count - 1))
            let isLong =
                outcome(
                    "makes \(node.path) longer", usual: 0, in: 0...1, drawn: surroundings.chance(of: 2) ? 1 : 0) == 1
            let rest = [UInt8](repeating: 0, count: isLong ? bytes.count - torn : 0)
            if torn > 0 || isLong { Self.write(Array(bytes.prefix(torn)) + rest, to: &node.durable, at: offset) }
        }
        node.changes.removeAll()
        node.content = node.durable
        (node.lock, node.openings) = (nil, 0)
    }

    // MARK: Changes

    private func change(_ change: NameChange, in directory: String) {
        Self.apply(change, to: &state.names)
        state.changes.append((directory, change))
    }

    private static func apply(_ change: NameChange, to names: inout [String: FileNode]) {
        switch change {
        case .set(let path, let node): names[path] = node
        case .move(let path, let newPath, let node):
            names[path] = nil
            names[newPath] = node
        case .remove(let path): names[path] = nil
        }
    }

    private static func apply(_ change: FileNode.Change, to content: inout [UInt8]) {
        switch change {
        case .write(let bytes, let offset): write(bytes, to: &content, at: offset)
        case .truncate(let length): truncate(&content, to: length)
        }
    }

    private static func write(_ bytes: [UInt8], to content: inout [UInt8], at offset: Int) {
        if content.count < offset + bytes.count { truncate(&content, to: offset + bytes.count) }
        content.replaceSubrange(offset..<offset + bytes.count, with: bytes)
    }

    private static func truncate(_ content: inout [UInt8], to length: Int) {
        if length < content.count {
            content.removeLast(content.count - length)
        } else {
            content += [UInt8](repeating: 0, count: length - content.count)
        }
    }
}
