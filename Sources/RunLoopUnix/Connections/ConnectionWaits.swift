@_spi(Ports) internal import RunLoopKit

/// The waits of tasks for a connection.
final class ConnectionWaits {
    let reader: TaskWait
    let writer: TaskWait
    /// The waits of tasks until all output is sent.
    private var closers: [TaskWait] = []
    /// The number of calls of `withStream(_:)` that will close the connection.
    var scopes = 0
    /// The number of available bytes that a task has seen.
    var seen = 0

    init(_ remote: RunLoop.Remote) {
        reader = NamedWait(remote, "reads a connection")
        writer = NamedWait(remote, "writes to a connection")
    }

    func makeCloser() -> TaskWait {
        closers.append(NamedWait(reader.remote, "waits until a connection has sent its output"))
        return closers.last!
    }

    /// Ends all waits when the connection is closed.
    func end() {
        reader.end()
        writer.end()
        for closer in closers { closer.end() }
        closers = []
    }
}
