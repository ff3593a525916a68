internal import Glibc
public import RunLoopKit

/// Watches files and directories, and calls its handler with their events: inotify as a source of a loop.
///
/// ```swift
/// let watcher = try FileWatcher { _, events in
///     for event in events where event.kind == .closedAfterWriting { print("saved:", event.path!) }
/// }
/// try watcher.watch("Sources")
/// try loop.add(watcher, forMode: .common)
/// ```
///
/// A watched directory reports its direct entries, not those of its subdirectories. Events come in the order of the
/// changes, and one call delivers all events of one read of the system's queue. Events that come while no mode of the
/// watcher runs wait in the queue. If the queue overflows, an event reports it (``FileEvent/Kind/overflow``).
///
/// The loop keeps the watcher as long as it is scheduled. A watcher that is released without having been added is
/// reported to the ``/RunLoopKit/RunLoop/trace`` of the thread's loop. A watcher belongs to its loop's thread and is
/// not `Sendable`.
public final class FileWatcher {
    /// Whether the watcher can still report.
    public var isValid: Bool { handler != nil }

    /// The current watches, in the order in which they were made.
    public var watches: [FileWatch] { byNumber.values.sorted { $0.number < $1.number } }

    /// The place where the watcher was made.
    public let origin: RunLoop.Origin

    private let system = WorldSystem.current
    private let descriptor: Int32
    private var handler: ((FileWatcher, [FileEvent]) -> Void)?
    /// The state for waiting tasks, if there is no other handler.
    var awaited: AwaitedEvents?
    let isForTasks: Bool
    private var byNumber: [Int32: FileWatch] = [:]
    // The loop keeps the source, and the source's handler keeps the watcher. So a watcher lives while it is scheduled;
    // a watcher in no loop lives until its last reference is released.
    private weak var source: DescriptorSource?
    private var wasAdded = false

    /// Room for some thousand events with short names, and at least for one with the longest name.
    private static let bufferSize = 65_536

    /// Makes a watcher. Add it with `RunLoop.add(_:forMode:)`. Earlier events wait in the system's queue.
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
    ///   - kinds: the kinds of event to report; not empty.
    /// - Returns: the watch. Events name it, and ``unwatch(_:)`` ends it.
    /// - Throws: ``FileWatchError`` if the path cannot be watched. The watcher is unchanged.
    /// - Precondition: the watcher is valid.
    @discardableResult
    public func watch(_ path: String, for kinds: FileEvent.Kinds = .all) throws(FileWatchError) -> FileWatch {
        require(isValid, "a file watcher that was invalidated watches nothing any more; make a new one")
        require(!kinds.isEmpty, "a watch reports something: give at least one kind of event")
        // A zero byte would end the path early, and the system would watch another file.
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

    /// Ends a watch. It reports nothing more: neither earlier events nor ``FileEvent/Kind/ignored``. Harmless on a
    /// watch that has ended.
    public func unwatch(_ watch: FileWatch) {
        guard isValid, byNumber[watch.number] == watch else { return }
        byNumber[watch.number] = nil
        system.unwatch(watch.number, with: descriptor)
    }

    /// Removes the watcher from its loop permanently, ends its watches and releases its handler. Undelivered events are
    /// dropped. Call it on the loop's thread; harmless when repeated.
    public func invalidate() {
        guard let handler else { return }
        // First, because this traps on another thread, and because a descriptor must not be closed while it is watched.
        source?.invalidate()
        self.handler = nil
        byNumber = [:]
        system.close(descriptor)
        awaited?.wait.end()
        withExtendedLifetime(handler) {}
    }

    // MARK: In a loop

    /// The source that schedules the watcher in a loop; made if there is none.
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

    /// Delivers the events of one read in one call. If more wait, the descriptor stays ready and the next pass
    /// continues, so that the loop's other sources have their turn.
    private func deliver() {
        let records = withUnsafeTemporaryAllocation(byteCount: FileWatcher.bufferSize, alignment: 8) { buffer in
            let count = system.read(descriptor, into: buffer)
            // The queue is empty, or a signal interrupted the read: remaining events are reported again.
            guard count > 0 else { return [InotifyRecord]() }
            return InotifyRecord.all(in: UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        }
        let events = records.flatMap(events(of:))
        if !events.isEmpty { handler?(self, events) }
    }

    private func events(of record: InotifyRecord) -> [FileEvent] {
        let watch = byNumber[record.watch]
        return record.kinds.compactMap { kind in
            // The event was queued before its watch ended.
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
    /// Schedules a file watcher in modes of this loop, which keeps the watcher until it is invalidated or removed.
    ///
    /// An invalid watcher is ignored. Call it on the loop's thread.
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

    /// Removes a file watcher from modes of this loop without invalidating it. Its watches remain, and events wait in
    /// the system's queue. Call it on the loop's thread.
    public func remove(_ watcher: FileWatcher, fromMode modes: Modes) {
        guard let source = watcher.scheduledSource else { return }
        remove(source, fromMode: modes)
    }
}
