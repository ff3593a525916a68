internal import Glibc
@_spi(Ports) internal import RunLoopCore
@_spi(Ports) internal import RunLoopSimulation
public import RunLoopUnix

/// The disk of a ``SimulatedHost``. A crash of the host may lose or tear bytes that were written and not synced, and
/// lose names that were changed and not synced, as the simulation's seed decides; synced ones stay. The disk can be
/// full, slow and broken.
///
/// The disk has the usual directories of a Linux system, `/data` and `/state`, the directories in which a test has
/// installed something, and the ones that the host's programs create. Files cannot be opened elsewhere, as on a real
/// disk. In these programs, ``/RunLoopUnix/Disk`` leads to the disk; files opened in other ways are the real ones. The
/// disk outlives processes and crashes. `Sendable`; use it from the simulation's threads.
public final class SimulatedDisk: Sendable {
    /// An operation of a disk.
    public enum Operation: Sendable, Hashable, CaseIterable {
        case open, write, truncate, sync, read, rename, remove, createDirectory, list, syncDirectory
    }

    struct State {
        var journal = NameJournal()
        var capacity: Int?
        var failures: [Operation: Int32] = [:]
        var durations: [Operation: Duration] = [:]
        var fileEventLimit = 16_384
        var queues: [FileEventQueue] = []
        var lastCookie: UInt32 = 0
    }

    // Unsafe, but used only by the thread whose turn it is.
    nonisolated(unsafe) var state = State()
    nonisolated(unsafe) let root = DirectoryNode("", in: nil, Ownership(.root, 0o755))
    let simulation: Simulation
    nonisolated(unsafe) let chance: Chance

    /// The name of the machine.
    let machine: String

    private let clock: MachineClock

    init(of machine: String, _ clock: MachineClock, _ simulation: Simulation, _ chance: Chance) {
        (self.machine, self.clock, self.simulation, self.chance) = (machine, clock, simulation, chance)
        for path in Directories.usual { installDirectory(at: path) }
        for (path, permissions) in Directories.permissions { installDirectory(at: path, permissions: permissions) }
    }

    /// The time of the machine's wall clock, in nanoseconds since the beginning of 1970.
    var time: Int64 { clock.time.nanoseconds }

    // MARK: For tests

    /// The largest number of bytes in all files together; `nil`, the default, sets no limit. A write beyond the limit
    /// fails with `ENOSPC`.
    public var capacity: Int? {
        get { state.capacity }
        set { state.capacity = newValue }
    }

    /// Makes an operation fail with `errno` from now on; with `nil` it works again.
    public func fail(_ operation: Operation, errno: Int32?) {
        state.failures[operation] = errno
    }

    /// Makes an operation block its thread for `duration` from now on; zero by default.
    public func slow(_ operation: Operation, by duration: Duration) {
        state.durations[operation] = duration
    }

    /// The paths of all files, sorted.
    public var paths: [String] { root.filesByPath.map(\.path).sorted() }

    /// Returns the bytes that a process would read from a file; `nil` if there is no such file.
    public func contents(of path: String) -> [UInt8]? { file(at: path)?.content }

    /// Returns the names in a directory, sorted; `nil` if there is no such directory.
    public func contentsOfDirectory(at path: String) -> [String]? {
        (try? node(at: path) as? DirectoryNode)?.sortedNames
    }

    /// Makes a directory and its ancestors, durably. An existing directory keeps its contents.
    ///
    /// - Parameters:
    ///   - path: the path from the root.
    ///   - owner: the owner; by default the present one, or root.
    ///   - permissions: the permissions, for example `0o700`; by default the present ones, or `0o755`.
    /// - Precondition: no file is in the way.
    public func installDirectory(at path: String, owner: ChildProcess.User? = nil, permissions: UInt32? = nil) {
        own(installedDirectory(at: path), owner, permissions)
    }

    private func own(_ node: DiskNode, _ owner: ChildProcess.User?, _ permissions: UInt32?) {
        if let owner { (node.ownership.owner, node.ownership.group) = (owner.identifier, owner.group) }
        if let permissions { node.ownership.permissions = permissions & 0o7777 }
    }

    private func installedDirectory(at path: String) -> DirectoryNode {
        var directory = root
        for name in Directories.name(path).split(separator: "/").map(String.init) {
            let node = directory.names[name] ?? create(DirectoryNode(name, in: directory, Ownership(.root, 0o755)))
            guard let next = node as? DirectoryNode else {
                fatalError("\(node.path) is a file, and nothing can be installed below it; remove it first")
            }
            directory = next
        }
        makeNamesDurable(of: directory)
        return directory
    }

    /// Makes the path of a node durable.
    private func makeNamesDurable(of node: DiskNode) {
        var node = node
        while let place = node.place {
            state.journal.sync { $0 == place }
            node = place.directory
        }
    }

    private func file(at path: String) -> FileNode? { try? node(at: Directories.name(path)) as? FileNode }

    /// Writes a file, durably, as a person at the keyboard would, and makes its missing directories.
    ///
    /// - Parameters:
    ///   - contents: the bytes.
    ///   - path: the path from the root.
    ///   - owner: the owner; by default the present one, or root.
    ///   - permissions: the permissions, for example `0o600`; by default the present ones, or `0o644`.
    /// - Precondition: no directory has the path.
    public func install(
        _ contents: [UInt8], at path: String, owner: ChildProcess.User? = nil, permissions: UInt32? = nil
    ) {
        let directory = installedDirectory(at: Directories.parent(of: path))
        let present = file(at: path)
        require(present != nil || !exists(path), "\(path) is a directory; install a file at another path")
        let node = present ?? create(FileNode(Directories.lastName(of: path), in: directory, Ownership(.root, 0o644)))
        node.times.noteWriting(at: time)
        node.install(contents)
        own(node, owner, permissions)
        makeNamesDurable(of: node)
        if present != nil || !contents.isEmpty { tell(IN_MODIFY, node) }
        tell(IN_CLOSE_WRITE, node)
    }

    /// Removes a file, durably. Does nothing if there is none.
    public func removeFile(at path: String) {
        guard let node = file(at: path) else { return }
        let directory = installedDirectory(at: Directories.parent(of: path))
        let place = NameChange.Place(directory: directory, name: Directories.lastName(of: path))
        guard directory.names[place.name] === node else { return }
        remove(node, at: place)
        state.journal.sync { $0 == place }
    }

    /// Renames a file, durably, and replaces a file that had the new name. Does nothing if there is no such file.
    public func moveFile(at path: String, to newPath: String) {
        guard let node = file(at: path), let old = node.place else { return }
        let directory = installedDirectory(at: Directories.parent(of: newPath))
        let new = NameChange.Place(directory: directory, name: Directories.lastName(of: newPath))
        guard old != new else { return }
        require(
            !(directory.names[new.name] is DirectoryNode), "\(newPath) is a directory; move the file to another path")
        move(node, from: old, to: new)
        makeNamesDurable(of: node)
    }

    /// The largest number of events that wait for a file watcher of the host; 16,384 by default. Later events are lost,
    /// and the watcher learns of an overflow.
    public var fileEventLimit: Int {
        get { state.fileEventLimit }
        set { state.fileEventLimit = newValue }
    }

    // MARK: A crash

    /// Loses the host's power: some of the unsynced changes stay, some are lost, and some stay in part.
    func crash() {
        // Names change in the order of the journal.
        let count = state.journal.count
        let kept = chance.outcome(on: machine, "keeps names", usual: count, in: 0...count)
        if kept < count { simulation.meet(.nameLost) }
        state.journal.crash(keeping: kept)
        state.queues.removeAll()
        root.forgetNames()
        root.crash()
        for file in root.files { settle(file) }
    }

    private func settle(_ node: FileNode) {
        let count = node.changes.count
        let whole = chance.outcome(on: machine, "keeps changes of \(node.path)", usual: count, in: 0...count)
        if whole < count { simulation.meet(.changeLost) }
        var kept = Array(node.changes.prefix(whole))
        if whole < count, case .write(let bytes, let offset) = node.changes[whole], !bytes.isEmpty {
            // The length may be on the disk before the bytes are.
            let torn = chance.outcome(on: machine, "tears \(node.path)", usual: 0, in: 0...(bytes.count - 1))
            let isLong = chance.outcome(
                chance.once(in: 2) ? 1 : 0, on: machine, "makes \(node.path) longer", usual: 0, in: 0...1)
            let length = isLong == 1 ? bytes.count : torn
            let rest = [UInt8](repeating: 0, count: length - torn)
            if length > 0 {
                simulation.meet(.writeTorn)
                kept.append(.write(Array(bytes.prefix(torn)) + rest, at: offset))
            }
        }
        node.crash(keeping: kept)
    }
}
