internal import RunLoopKit

/// The tasks that wait for a connection.
final class ConnectionWaits {
    let reader: TaskWait
    let writer: TaskWait
    let closer: TaskWait
    /// How many of the bytes that are there a task has been shown.
    @exclusivity(unchecked) var seen = 0
    /// Reading is paused, because no task has asked for what has come.
    @exclusivity(unchecked) var holdsInput = false

    init(_ remote: RunLoop.Remote) {
        reader = TaskWait(remote)
        writer = TaskWait(remote)
        closer = TaskWait(remote)
    }

    /// The connection is closed.
    func end() {
        reader.end()
        writer.end()
        closer.end()
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
