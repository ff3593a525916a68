internal import RunLoopKit

/// The tasks that wait for a connection.
final class ConnectionWaits {
    let reader: TaskWait
    let writer: TaskWait
    /// One for each task that waits until everything is sent.
    private var closers: [TaskWait] = []
    /// The number of calls of `withStream(_:)` that will close the connection.
    var scopes = 0
    /// How many of the bytes that are there a task has been shown.
    @exclusivity(unchecked) var seen = 0
    /// Reading is paused, because no task has asked for what has come.
    @exclusivity(unchecked) var holdsInput = false

    init(_ remote: RunLoop.Remote) {
        reader = TaskWait(remote)
        writer = TaskWait(remote)
    }

    func makeCloser() -> TaskWait {
        closers.append(TaskWait(reader.remote))
        return closers.last!
    }

    /// The connection is closed.
    func end() {
        reader.end()
        writer.end()
        for closer in closers { closer.end() }
        closers = []
    }
}

extension Connection {
    /// A connection was closed before a task had got what it waited for. `Sendable`.
    public struct ClosedError: Error, Sendable, Equatable, CustomStringConvertible {
        /// Why it was closed.
        public let reason: CloseReason

        /// An error for that reason.
        public init(reason: CloseReason) {
            self.reason = reason
        }

        public var description: String { "the connection was closed: \(reason)" }
    }
}
