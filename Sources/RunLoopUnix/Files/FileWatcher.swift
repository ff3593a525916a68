internal import Glibc
@_spi(Ports) public import RunLoopKit

/// A source that calls its handler with the events of watched files and directories, by inotify.
///
/// ```swift
/// let watcher = try FileWatcher { _, events in
///     for event in events where event.kind == .closedAfterWriting { print("saved:", event.path!) }
/// }
/// try watcher.watch("Sources")
/// try loop.add(watcher, forMode: .common)
/// ```
///
/// A watched directory reports its direct entries, not the contents of its subdirectories. Events arrive in the order
/// of the changes, and one call delivers all events of one read of the system's queue. While no mode of the watcher
/// runs, events wait in the queue. If the queue overflows, an event reports it (``FileEvent/Kind/overflow``).
///
/// The loop keeps a scheduled watcher, and the end of the loop invalidates it. A watcher that is released without
/// having been added is reported to the ``/RunLoopKit/RunLoop/trace`` of the thread's loop. A watcher belongs to its
/// loop's thread and is not `Sendable`.
///
/// An invalidated watcher has no watches, and drops undelivered events.
public final class FileWatcher: RunLoop.SystemSource {
    /// The current watches, in the order of their creation.
    public var watches: [FileWatch] { byNumber.values.sorted { $0.number < $1.number } }

    private let system: any SystemCalls
    /// The state that waiting tasks share, if the watcher has no handler.
    var awaited: AwaitedEvents?
    let isForTasks: Bool
    private var byNumber: [Int32: FileWatch] = [:]

    /// The size of the buffer for a read: room for some thousand events with short names, and for at least one with the
    /// longest name.
    private static let bufferSize = 65_536

    /// Creates a watcher. Add it with `RunLoop.add(_:forMode:)`; until then, events wait in the system's queue.
    ///
    /// - Parameters:
    ///   - order: the order among ready sources; smaller numbers are served earlier.
    ///   - handler: called on the loop's thread with at least one event; kept until the watcher is invalidated. Without
    ///     a handler, a task waits for ``events(on:inModes:)``.
    ///   - file: the place for ``/RunLoopKit/RunLoop/Item/origin``, with `line`.
    /// - Throws: ``FileWatchError/tooManyWatchers`` or ``FileWatchError/system(_:)``.
    public init(
        order: Int = 0, handler: ((FileWatcher, [FileEvent]) -> Void)? = nil, file: StaticString = #fileID,
        line: UInt32 = #line
    ) throws(FileWatchError) {
        system = WorldSystem.current
        let descriptor = system.openFileWatcher()
        if descriptor < 0 {
            throw errno == EMFILE ? .tooManyWatchers : .system(.last("make a file watcher"))
        }
        isForTasks = handler == nil
        super.init(
            descriptor: descriptor, name: "file watcher", order: order, origin: RunLoop.Origin(file: file, line: line))
        let handler = handler ?? { $0.keep($1) }
        setHandler({ [unowned self] in deliver(to: handler) }, cleanup: { [unowned self] in if !isValid { end() } })
    }

    deinit {
        closeDescriptor()
    }

    /// Watches a file or a directory. Symbolic links are followed.
    ///
    /// - Parameters:
    ///   - path: the path. A relative path is resolved now, from the process's current directory.
    ///   - kinds: the kinds of events to report; not empty.
    /// - Returns: the watch, which events name and ``unwatch(_:)`` ends.
    /// - Throws: ``FileWatchError`` if the path cannot be watched; the watcher is then unchanged.
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
        assert(byNumber[number] == nil, "the system has given a number twice")
        byNumber[number] = watch
        return watch
    }

    /// Ends a watch, which then reports nothing more, neither earlier events nor ``FileEvent/Kind/ignored``. Has no
    /// effect on a watch that has ended.
    public func unwatch(_ watch: FileWatch) {
        guard isValid, byNumber[watch.number] == watch else { return }
        byNumber[watch.number] = nil
        system.unwatch(watch.number, with: descriptor)
    }

    /// Releases the watches and the descriptor of an invalid watcher.
    private func end() {
        byNumber = [:]
        closeDescriptor()
        endAwaiting()
    }

    private func closeDescriptor() {
        if descriptor >= 0 { system.close(descriptor) }
        descriptor = -1
    }

    /// Delivers the events of one read in one call. If more are waiting, the descriptor stays ready and the next pass
    /// continues, so that the loop's other sources have their turn.
    private func deliver(to handler: (FileWatcher, [FileEvent]) -> Void) {
        let records = withUnsafeTemporaryAllocation(byteCount: FileWatcher.bufferSize, alignment: 8) { buffer in
            let count = system.read(descriptor, into: buffer)
            // The queue is empty, or a signal interrupted the read; remaining events are reported again.
            guard count > 0 else { return [InotifyRecord]() }
            return InotifyRecord.all(in: UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        }
        let events = records.flatMap(events(of:))
        if !events.isEmpty { handler(self, events) }
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
    /// An invalid watcher is ignored and reported to ``/RunLoopKit/RunLoop/trace``. A watcher that leaves its last mode
    /// keeps its watches: events wait in the system's queue. Call it on the loop's thread.
    ///
    /// - Precondition: the watcher is in no other loop.
    /// - Throws: ``/RunLoopKit/DescriptorError`` if the system cannot watch another descriptor.
    public func add(_ watcher: FileWatcher, forMode modes: Modes) throws(DescriptorError) {
        require(
            !watcher.isForTasks,
            "a file watcher without a handler would lose its events: have a task wait for them, or give it a handler")
        try schedule(watcher, modes)
    }
}
