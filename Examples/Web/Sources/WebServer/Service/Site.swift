internal import Logging
internal import NIOCore
internal import RunLoopTLS
internal import RunLoopUnix
internal import Synchronization

/// The state that all connections share. Any thread.
final class Site: Sendable {
    let metrics = TextMetrics()
    let measures: Measures
    let census = Census()
    let uploads: Uploads
    let chat: Chat
    let log: Logger

    private struct Reloaded {
        var limits = Limits()
        var tls: TLSServerContext?
        var isReady = false
        var consoleAccess: ConsoleAccess?
    }
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

    /// The certificates for connections from now on; `nil` without TLS.
    var tls: TLSServerContext? {
        get { reloaded.withLock { $0.tls } }
        set { reloaded.withLock { $0.tls = newValue } }
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
}
