internal import Glibc
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

    struct State {
        var directories = Directories()
        var names: [String: FileNode] = [:]
        var durableNames: [String: FileNode] = [:]
        /// The changes of names that were not synced, each with its directory.
        var changes: [(directory: String, change: NameChange)] = []
        var capacity: Int?
        var failures: [Operation: Int32] = [:]
        var durations: [Operation: Duration] = [:]
        var fileEventLimit = 16_384
        var queues: [FileEventQueue] = []
        var lastCookie: UInt32 = 0
    }

    // Unsafe, but only the thread whose turn it is uses them.
    nonisolated(unsafe) var state = State()
    let simulation: Simulation
    nonisolated(unsafe) let chance: Chance

    /// The name of the machine.
    let machine: String

    init(of machine: String, _ simulation: Simulation, _ chance: Chance) {
        (self.machine, self.simulation, self.chance) = (machine, simulation, chance)
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
        node.install(contents)
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
        move.apply(to: &state.names)
        move.apply(to: &state.durableNames)
        tellOfMove(of: node, from: path, to: newPath, replacing: replaced)
    }

    /// The largest number of events that wait for a file watcher of the host; 16,384 unless set. Later events are lost,
    /// and the watcher learns of an overflow.
    public var fileEventLimit: Int {
        get { state.fileEventLimit }
        set { state.fileEventLimit = newValue }
    }

    // MARK: A crash

    /// Loses the host's power: of the unsynced changes some stay, some are lost, and some stay in part.
    func crash() {
        // Names change in the order of the journal.
        let count = state.changes.count
        let kept = chance.outcome(on: machine, "keeps names", usual: count, in: 0...count)
        for (_, change) in state.changes.prefix(kept) { change.apply(to: &state.durableNames) }
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

    private func settle(_ node: FileNode) {
        let count = node.changes.count
        let whole = chance.outcome(on: machine, "keeps changes of \(node.path)", usual: count, in: 0...count)
        var kept = Array(node.changes.prefix(whole))
        if whole < count, case .write(let bytes, let offset) = node.changes[whole], !bytes.isEmpty {
            // The length may be on the disk before the bytes are.
            let torn = chance.outcome(on: machine, "tears \(node.path)", usual: 0, in: 0...(bytes.count - 1))
            let isLong = chance.outcome(
                chance.once(in: 2) ? 1 : 0, on: machine, "makes \(node.path) longer", usual: 0, in: 0...1)
            let length = isLong == 1 ? bytes.count : torn
            let rest = [UInt8](repeating: 0, count: length - torn)
            if length > 0 { kept.append(.write(Array(bytes.prefix(torn)) + rest, at: offset)) }
        }
        node.crash(keeping: kept)
    }
}
