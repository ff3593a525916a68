internal import CoreMetrics
internal import Logging
internal import RunLoopHTTP
internal import RunLoopUnix
internal import Synchronization

/// The state that all connections share. Any thread.
final class Site: Sendable {
    let metrics = TextMetrics()
    let measures: Measures
    let uploads: Uploads
    let chat: Chat
    let log: Logger

    private struct Reloaded {
        var limits = Limits()
        var isReady = false
        var consoleAccess: ConsoleAccess?
    }
    private let open = Atomic(0)
    private let reloaded = Mutex(Reloaded())

    /// - Parameters:
    ///   - loops: the loops that serve the connections.
    ///   - disks: the loops that wait for the disk.
    init(_ settings: Settings, loops: LoopGroup, disks: LoopGroup, _ log: Logger) {
        measures = Measures(metrics)
        uploads = Uploads(in: settings.uploads, disks)
        chat = Chat(loops, measures)
        self.log = log
    }

    /// The limits for everything that begins from now on.
    var limits: Limits {
        get { reloaded.withLock { $0.limits } }
        set { reloaded.withLock { $0.limits = newValue } }
    }

    /// The socket and the key for the page of the console; `nil` without such a page.
    var consoleAccess: ConsoleAccess? {
        get { reloaded.withLock { $0.consoleAccess } }
        set { reloaded.withLock { $0.consoleAccess = newValue } }
    }

    /// `true` if new clients should come: not before the daemon listens, and not while it stops.
    var isReady: Bool {
        get { reloaded.withLock { $0.isReady } }
        set { reloaded.withLock { $0.isReady = newValue } }
    }

    // MARK: Connections and requests

    /// The number of open connections.
    var connections: Int { open.load(ordering: .relaxed) }

    /// The hooks of the server, which count its connections and requests, and log each request.
    var hooks: HTTPServer.Hooks {
        var hooks = HTTPServer.Hooks()
        hooks.opened = { [self] _ in measures.connections.record(open.add(1, ordering: .relaxed).newValue) }
        hooks.closed = { [self] _ in measures.connections.record(open.subtract(1, ordering: .relaxed).newValue) }
        hooks.failed = { [log] error, request in log.error("\((request.path ?? "-").debugDescription): \(error)") }
        hooks.completed = { [self] in note($0) }
        return hooks
    }

    private func note(_ done: HTTPServer.Completion) {
        measures.count(done)
        // Escaped, so that a line of the log is one request.
        let request = done.request.map { "\($0.method) \($0.path ?? "-") \(done.version)" } ?? "-"
        let end = done.isCutOff ? "cut off" : "\(Int(done.duration / .microseconds(1)))us"
        log.info(
            """
            \(done.peer.address ?? "-") \(request.debugDescription) \(done.status?.code ?? 0) \(done.sentBytes) \(end)
            """)
    }
}
