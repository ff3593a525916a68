internal import Glibc
public import RunLoopKit

/// Watches files and directories and calls its handler with what happens to them: inotify as a source of a loop.
///
/// ```swift
/// let watcher = try FileWatcher { _, events in
///     for event in events where event.kind == .closedAfterWriting { print("saved:", event.path!) }
/// }
/// try watcher.watch("Sources")
/// try loop.add(watcher, forMode: .common)
/// ```
///
/// A directory reports on what is directly in it, not on what is deeper. Events come in the order in which things
/// happened, as many in one call as one read of the system's queue brings; those that come while no mode of the watcher
/// runs wait. If more come than the queue holds, an event says so (``FileEvent/Kind/overflow``).
///
/// The loop keeps the watcher as long as it is scheduled. A watcher belongs to its loop's thread.
public final class FileWatcher {
    /// Whether the watcher can still report.
    public var isValid: Bool { handler != nil }

    /// What is watched, in the order in which it was asked for.
    public var watches: [FileWatch] { byNumber.values.sorted { $0.number < $1.number } }

    /// Where it was made.
    public let origin: RunLoop.Origin

    private let descriptor: Int32
    private var handler: ((FileWatcher, [FileEvent]) -> Void)?
    private var byNumber: [Int32: FileWatch] = [:]
    // The loop keeps the source and the source the watcher: so the loop keeps the watcher while it is scheduled, and
    // one that is in no loop goes with its last reference.
    private weak var source: DescriptorSource?

    /// Enough for some thousand events with short names, and for one with the longest name in any case.
    private static let bufferSize = 65_536

    /// A watcher, to be added with ``RunLoop/add(_:forMode:)-(FileWatcher,_)``. What happens to its files
    /// before it is added waits in the system's queue.
    ///
    /// - Parameters:
    ///   - handler: called on the loop's thread with events, at least one; kept until the watcher is invalidated.
    ///   - file: for ``origin``, as `line`.
    /// - Throws: ``FileWatchError/tooManyWatchers``, or ``FileWatchError/system(_:)``.
    public init(
        handler: @escaping (FileWatcher, [FileEvent]) -> Void, file: StaticString = #fileID, line: UInt32 = #line
    ) throws(FileWatchError) {
        descriptor = inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC))
        if descriptor < 0 {
            throw errno == EMFILE ? .tooManyWatchers : .system(.last("make a file watcher"))
        }
        self.handler = handler
        origin = RunLoop.Origin(file: file, line: line)
    }

    deinit {
        if isValid { close(descriptor) }
    }

    /// Watches a file or a directory. Symbolic links are followed.
    ///
    /// - Parameters:
    ///   - path: the path; a relative one is taken from the process's current directory, now.
    ///   - kinds: what to report; not empty.
    /// - Returns: the watch, which events name, and with which it can be taken back.
    /// - Throws: why it cannot be watched. The watcher goes on as it was.
    /// - Precondition: the watcher is valid.
    @discardableResult
    public func watch(_ path: String, for kinds: FileEvent.Kinds = .all) throws(FileWatchError) -> FileWatch {
        require(isValid, "a file watcher that was invalidated watches nothing any more; make a new one")
        require(!kinds.isEmpty, "a watch reports something: give at least one kind of event")
        // A zero byte would end the path early, and another file be watched.
        if path.utf8.contains(0) { throw .noSuchFile(path) }
        // Without the last bit, a second watch of the same file would silently take the first one's place.
        let mask = kinds.intersection(.all).rawValue | UInt32(IN_MASK_CREATE)
        let number = inotify_add_watch(descriptor, path, mask)
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

    /// Takes a watch back: nothing more is reported for it, also not what has happened before, nor
    /// ``FileEvent/Kind/ignored``. Harmless on a watch that has ended.
    public func unwatch(_ watch: FileWatch) {
        guard isValid, byNumber[watch.number] == watch else { return }
        byNumber[watch.number] = nil
        inotify_rm_watch(descriptor, watch.number)
    }

    /// Takes the watcher out of its loop for good, ends its watches and lets its handler go. On its loop's thread;
    /// harmless when repeated. Events that have not been delivered are dropped.
    public func invalidate() {
        guard let handler else { return }
        // First: it traps on another thread, and a descriptor must not be closed while it is waited for.
        source?.invalidate()
        self.handler = nil
        byNumber = [:]
        close(descriptor)
        withExtendedLifetime(handler) {}
    }

    // MARK: In a loop

    /// The source through which the watcher is in a loop, made if there is none.
    fileprivate func makeSource() -> DescriptorSource {
        if let source { return source }
        let made = DescriptorSource(fileDescriptor: descriptor, events: .readable, origin: origin) { _, _ in
            self.deliver()
        }
        made.name = "file watcher"
        source = made
        return made
    }

    fileprivate var scheduledSource: DescriptorSource? { source }

    /// One read, one call. If more waits the descriptor stays ready, and the next pass goes on: however many events
    /// there are, the loop's other sources have their turn.
    private func deliver() {
        let records = withUnsafeTemporaryAllocation(byteCount: FileWatcher.bufferSize, alignment: 8) { buffer in
            let count = read(descriptor, buffer.baseAddress, buffer.count)
            // Nothing there, or interrupted: if there is something it will be reported again.
            guard count > 0 else { return [InotifyRecord]() }
            return InotifyRecord.all(in: UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        }
        let events = records.flatMap(events(of:))
        if !events.isEmpty { handler?(self, events) }
    }

    private func events(of record: InotifyRecord) -> [FileEvent] {
        let watch = byNumber[record.watch]
        return record.kinds.compactMap { kind in
            // What is still in the queue of a watch that was taken back.
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
    /// A watcher that is invalid or in another loop is ignored.
    ///
    /// - Throws: ``DescriptorError`` if the system has no room to wait for one more descriptor.
    public func add(_ watcher: FileWatcher, forMode modes: Modes) throws(DescriptorError) {
        guard watcher.isValid else { return }
        try add(watcher.makeSource(), forMode: modes)
    }

    /// Takes a file watcher out of modes of this loop without invalidating it: its watches go on, and what happens
    /// meanwhile waits in the system's queue.
    public func remove(_ watcher: FileWatcher, fromMode modes: Modes) {
        guard let source = watcher.scheduledSource else { return }
        remove(source, fromMode: modes)
    }
}
