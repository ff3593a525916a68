@_spi(Ports) public import RunLoopKit

extension FileWatcher {
    /// Returns a sequence of the events of a watcher without a handler. Iterate on the loop's thread.
    ///
    /// ```swift
    /// let watcher = try FileWatcher()
    /// try watcher.watch("Sources", for: .closedAfterWriting)
    /// for try await event in watcher.events(on: loop) { print("saved:", event.path!) }
    /// ```
    ///
    /// The watcher keeps one read of the system's queue, at most 64 KiB. While no task waits, further events stay in
    /// the queue; if the queue overflows, an element reports it (``FileEvent/Kind/overflow``). A cancelled wait
    /// consumes nothing. The iteration ends when the watcher is invalidated, which drops undelivered events. An
    /// iteration throws `DescriptorError` if the system cannot watch another descriptor, `CancellationError`, and
    /// `RunLoop.WaitError` if another task waits or the loop has ended. O(1).
    ///
    /// - Parameters:
    ///   - loop: the calling thread's loop; the same in every call.
    ///   - modes: the modes in which the queue is read; by default the common modes.
    /// - Precondition: the watcher was created without a handler, and `modes` is not empty.
    public func events(on loop: RunLoop, inModes modes: RunLoop.Modes = .common) -> Events {
        require(isForTasks, "a file watcher with a handler is not awaited; make it without the handler")
        require(!modes.isEmpty, "file events need a mode; without any, none would be read")
        if awaited == nil && isValid { awaited = AwaitedEvents(loop) }
        require(
            awaited.map { $0.loop === loop } ?? true,
            "a file watcher has one loop: ask for its events on the loop that was given first")
        return Events { [self] in try await nextEvent(in: modes) }
    }

    /// A sequence of a file watcher's events; see ``FileWatcher/events(on:inModes:)``.
    public typealias Events = RunLoop.TaskSequence<FileEvent>

    private nonisolated(nonsending) func nextEvent(in modes: RunLoop.Modes) async throws -> FileEvent? {
        while let awaited {
            if let event = awaited.events.popFirst() { return event }
            try await awaited.wait.admit(for: "the events of a file watcher")
            try awaited.loop.schedule(self, modes)
            defer { leaveLoop() }
            try await awaited.wait.wait()
        }
        return nil
    }

    /// Keeps the events of a read. Further events stay in the system's queue until a task waits again.
    func keep(_ events: [FileEvent]) {
        assert(isForTasks, "events of a handler are kept for a task")
        awaited?.events += events
        leaveLoop()
        awaited?.wait.end()
    }

    /// Ends the waits after the watcher was invalidated. Tasks receive the events of the last read only if the loop
    /// ended.
    func endAwaiting() {
        guard let awaited else { return }
        if awaited.loop.hasEnded { return awaited.wait.end(throwing: awaited.wait.remote.endError) }
        self.awaited = nil
        awaited.wait.end()
    }
}

final class AwaitedEvents {
    let loop: RunLoop
    let wait: TaskWait
    /// The events of the last read that no task has taken.
    fileprivate var events: ArraySlice<FileEvent> = []

    init(_ loop: RunLoop) {
        self.loop = loop
        wait = NamedWait(loop.remote, "waits for events of files")
    }
}
