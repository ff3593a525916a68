public import RunLoopKit

extension FileWatcher {
    /// The events of a watcher without a handler, one by one. Iterate on the loop's thread.
    ///
    /// ```swift
    /// let watcher = try FileWatcher()
    /// try watcher.watch("Sources", for: .closedAfterWriting)
    /// for try await event in watcher.events(on: loop) { print("saved:", event.path!) }
    /// ```
    ///
    /// One read of the system's queue is kept, at most 64 KiB. Events that come while no task waits stay in the queue;
    /// if the queue overflows, an element reports it (``FileEvent/Kind/overflow``). A cancelled wait takes nothing. The
    /// iteration ends when the watcher is invalidated, which drops undelivered events. It throws
    /// `/RunLoopKit/DescriptorError` if the system cannot watch one more descriptor, `CancellationError`, and
    /// `RunLoop.WaitError` if another task waits or the loop has ended. O(1).
    ///
    /// - Parameters:
    ///   - loop: the calling thread's loop; the same one each time.
    ///   - modes: the modes in which the queue is read; the common modes unless given.
    /// - Precondition: the watcher was made without a handler, and there is a mode.
    public func events(on loop: RunLoop, inModes modes: RunLoop.Modes = .common) -> Events {
        require(isForTasks, "a file watcher with a handler is not awaited; make it without the handler")
        require(!modes.isEmpty, "file events need a mode; without any, none would be read")
        if awaited == nil { awaited = AwaitedEvents(loop) }
        require(
            awaited!.loop === loop, "a file watcher has one loop: ask for its events on the loop that was given first")
        return Events(watcher: self, modes: modes)
    }

    /// The events of a file watcher; see ``FileWatcher/events(on:inModes:)``. It belongs to the loop's thread and is
    /// not `Sendable`.
    public struct Events: AsyncSequence {
        let watcher: FileWatcher
        let modes: RunLoop.Modes

        /// An iteration. Each event goes to the iteration that asks first.
        public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(watcher: watcher, modes: modes) }

        /// An iteration over events. It belongs to the loop's thread and is not `Sendable`.
        public struct AsyncIterator: AsyncIteratorProtocol {
            let watcher: FileWatcher
            let modes: RunLoop.Modes

            /// Waits for the next event; `nil` when the watcher has been invalidated. On the loop's thread.
            ///
            /// - Throws: the errors of ``FileWatcher/events(on:inModes:)``.
            public func next(isolation: isolated (any Actor)? = #isolation) async throws -> FileEvent? {
                try await watcher.nextEvent(in: modes)
            }
        }
    }

    fileprivate nonisolated(nonsending) func nextEvent(in modes: RunLoop.Modes) async throws -> FileEvent? {
        guard let awaited else { return nil }
        while isValid || awaited.hasLostLoop {
            if let event = awaited.events.popFirst() { return event }
            guard !awaited.hasLostLoop else { throw awaited.wait.remote.endError }
            require(
                awaited.wait.remote.isCurrent,
                "file events are awaited on the loop's thread: in a task of the loop, or in one that prefers its executor"
            )
            guard !awaited.wait.isTaken else { throw RunLoop.WaitError.alreadyWaiting("the events of a file watcher") }
            try awaited.loop.schedule(self, modes)
            defer { leaveLoop() }
            try await awaited.wait.wait()
        }
        return nil
    }
}

/// The state that the tasks of a file watcher share.
final class AwaitedEvents {
    let loop: RunLoop
    let wait: TaskWait
    /// Events of the last read that no task has taken yet.
    fileprivate var events: ArraySlice<FileEvent> = []
    fileprivate private(set) var hasLostLoop = false

    init(_ loop: RunLoop) {
        self.loop = loop
        wait = TaskWait(loop.remote)
    }

    /// Keeps the events of a read. Further ones wait in the system's queue until a task waits again.
    func keep(_ more: [FileEvent], of watcher: FileWatcher) {
        events += more
        watcher.leaveLoop()
        wait.end()
    }

    func watcherHasEnded() {
        hasLostLoop = loop.hasEnded
        wait.end()
    }
}

@available(*, unavailable, message: "file events belong to the loop's thread")
extension FileWatcher.Events: Sendable {}

@available(*, unavailable, message: "an iteration belongs to the loop's thread")
extension FileWatcher.Events.AsyncIterator: Sendable {}
