internal import Glibc
public import RunLoopKit

/// Watches files and directories, and calls its handler with what happens to them: inotify as a source of a loop.
///
/// ```swift
/// let watcher = try FileWatcher { _, events in
///     for event in events where event.kind == .closedAfterWriting { print("saved:", event.path!) }
/// }
/// try watcher.watch("Sources")
/// try loop.add(watcher, forMode: .common)
/// ```
///
/// A watched directory reports what is directly in it, not what is deeper. Events come in the order in which things
/// happened, and one call delivers as many as one read of the system's queue brings. Events that come while no mode of
/// the watcher runs wait in the queue. If the queue overflows, an event says so (``FileEvent/Kind/overflow``).
///
/// The loop keeps the watcher as long as it is scheduled. One that is let go without ever having been added is told to
/// the ``/RunLoopKit/RunLoop/trace`` of the thread's loop. A watcher belongs to its loop's thread and is not `Sendable`.
public final class FileWatcher {
    /// Whether the watcher can still report.
    public var isValid: Bool { handler != nil }

    /// The current watches, in the order in which they were made.
    public var watches: [FileWatch] { byNumber.values.sorted { $0.number < $1.number } }

    /// Where it was made.
    public let origin: RunLoop.Origin

    private let system = WorldSystem.current
    private let descriptor: Int32
    private var handler: ((FileWatcher, [FileEvent]) -> Void)?
    /// What tasks wait for, if there is no other handler.
    var awaited: AwaitedEvents?
    let isForTasks: Bool
    private var byNumber: [Int32: FileWatch] = [:]
    // The loop keeps the source, and the source's handler keeps the watcher. So a watcher lives while it is scheduled,
    // and one that is in no loop goes with its last reference.
    private weak var source: DescriptorSource?
    private var wasAdded = false

    /// Room for some thousand events with short names, and always for one with the longest name.
    private static let bufferSize = 65_536

    /// Makes a watcher. Add it with `RunLoop.add(_:forMode:)`. Events that come before that wait in the system's queue.
    ///
    /// - Parameters:
    ///   - handler: called on the loop's thread with at least one event; kept until the watcher is invalidated. Without
    ///     it, a task waits for ``events(on:inModes:)``.
    ///   - file: the place for ``origin``, with `line`.
    /// - Throws: ``FileWatchError/tooManyWatchers`` or ``FileWatchError/system(_:)``.
    public init(
        handler: ((FileWatcher, [FileEvent]) -> Void)? = nil, file: StaticString = #fileID, line: UInt32 = #line
    ) throws(FileWatchError) {
        descriptor = system.openFileWatcher()
        if descriptor < 0 {
            throw errno == EMFILE ? .tooManyWatchers : .system(.last("make a file watcher"))
        }
        isForTasks = handler == nil
        self.handler = handler ?? { $0.awaited?.keep($1, of: $0) }
        origin = RunLoop.Origin(file: file, line: line)
    }

    deinit {
        guard isValid else { return }
        system.close(descriptor)
        if !wasAdded { RunLoop.tellOfUnused("the file watcher (\(origin))") }
    }

    /// Watches a file or a directory. Symbolic links are followed.
    ///
    /// - Parameters:
    ///   - path: the path. A relative one is resolved now, from the process's current directory.
    ///   - kinds: what to report; not empty.
    /// - Returns: the watch. Events name it, and ``unwatch(_:)`` takes it back.
    /// - Throws: ``FileWatchError`` if the path cannot be watched. The watcher is unchanged.
    /// - Precondition: the watcher is valid.
    @discardableResult
    public func watch(_ path: String, for kinds: FileEvent.Kinds = .all) throws(FileWatchError) -> FileWatch {
        require(isValid, "a file watcher that was invalidated watches nothing any more; make a new one")
        require(!kinds.isEmpty, "a watch reports something: give at least one kind of event")
        // A zero byte would end the path early, so that another file would be watched.
        if path.utf8.contains(0) { throw .noSuchFile(path) }
        let number = system.watch(path, with: descriptor, for: kinds.intersection(.all).rawValue)
        if number < 0 {
            let reason = errno
            switch reason {
            case ENOENT, ENOTDIR, ENAMETOOLONG, ELOOP: throw .noSuchFile(path)
            case EACCES: throw .notPermitted(path)
            case EEXIST: throw .alreadyWatched(path)
            case ENOSPC: throw .tooManyWatches(path)
            default: throw .system(SystemError("watch \(path)", errno: reason))
            }
        }
        let watch = FileWatch(path: path, number: number)
        byNumber[number] = watch
        return watch
    }

    /// Takes a watch back. Nothing more is reported for it: neither what has happened before nor
    /// ``FileEvent/Kind/ignored``. Harmless on a watch that has ended.
    public func unwatch(_ watch: FileWatch) {
        guard isValid, byNumber[watch.number] == watch else { return }
        byNumber[watch.number] = nil
        system.unwatch(watch.number, with: descriptor)
    }

    /// Takes the watcher out of its loop for good, ends its watches and lets its handler go. Events that were not
    /// delivered are dropped. Call it on the loop's thread; harmless when repeated.
    public func invalidate() {
        guard let handler else { return }
        // First, because it traps on another thread, and because a descriptor must not be closed while it is watched.
        source?.invalidate()
        self.handler = nil
        byNumber = [:]
        system.close(descriptor)
        awaited?.wait.end()
        withExtendedLifetime(handler) {}
    }

    // MARK: In a loop

    /// The source through which the watcher is in a loop; made if there is none.
    func makeSource() -> DescriptorSource {
        if let source { return source }
        let made = DescriptorSource(fileDescriptor: descriptor, events: .readable, origin: origin) { _, _ in
            self.deliver()
        }
        made.name = "file watcher"
        made.removalHandler = { [weak self] in self?.awaited?.sourceWasRemoved() }
        (source, wasAdded) = (made, true)
        return made
    }

    var scheduledSource: DescriptorSource? { source }

    /// One read, one call. If more waits, the descriptor stays ready and the next pass goes on: however many events
    /// there are, the loop's other sources have their turn.
    private func deliver() {
        let records = withUnsafeTemporaryAllocation(byteCount: FileWatcher.bufferSize, alignment: 8) { buffer in
            let count = system.read(descriptor, into: buffer)
            // Nothing is there, or a signal interrupted the read: if there is something it will be reported again.
            guard count > 0 else { return [InotifyRecord]() }
            return InotifyRecord.all(in: UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        }
        let events = records.flatMap(events(of:))
        if !events.isEmpty { handler?(self, events) }
    }

    private func events(of record: InotifyRecord) -> [FileEvent] {
        let watch = byNumber[record.watch]
        return record.kinds.compactMap { kind in
            // An event that was queued before its watch was taken back.
            guard kind == .overflow || watch != nil else { return nil }
            if kind == .ignored { byNumber[record.watch] = nil }
            return FileEvent(
                kind: kind, watch: watch, nameBytes: record.name, isDirectory: record.isDirectory,
                cookie: record.cookie)
        }
    }
}

@available(*, unavailable, message: "a file watcher belongs to its loop's thread")
extension FileWatcher: Sendable {}

extension RunLoop {
    /// Schedules a file watcher in modes of this loop, which keeps it until it is invalidated or removed.
    ///
    /// A watcher that is invalid is ignored. Call it on the loop's thread.
    ///
    /// - Precondition: the watcher is in no other loop.
    /// - Throws: ``/RunLoopKit/DescriptorError`` if the system cannot watch one more descriptor.
    public func add(_ watcher: FileWatcher, forMode modes: Modes) throws(DescriptorError) {
        require(
            !watcher.isForTasks,
            "a file watcher without a handler would lose its events: have a task wait for them, or give it a handler")
        guard watcher.isValid else { return }
        try add(watcher.makeSource(), forMode: modes)
    }

    /// Takes a file watcher out of modes of this loop without invalidating it. Its watches remain, and events wait in
    /// the system's queue. Call it on the loop's thread.
    public func remove(_ watcher: FileWatcher, fromMode modes: Modes) {
        guard let source = watcher.scheduledSource else { return }
        remove(source, fromMode: modes)
    }
}
