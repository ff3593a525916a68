import Glibc
import Logging
import RunLoopKit
import RunLoopUnix

/// The daemon, from its start to its end.
final class Daemon {
    private let options: TTLStore
    private let log: Logger
    private let loop = RunLoop.current
    private let store: Store
    private let server: Server
    private let snapshot: Snapshot?

    init(_ options: TTLStore, _ log: Logger) {
        self.options = options
        self.log = log
        store = Store(on: loop)
        var settings = Server.Settings()
        settings.maximumClients = options.maxClients
        if options.idleTimeout > 0 { settings.idleTimeout = .seconds(options.idleTimeout) }
        server = Server(store, on: loop, settings, log)
        snapshot = options.snapshot.map(Snapshot.init)
    }

    /// - Returns: the exit status.
    func run() throws -> Int32 {
        try snapshot?.load(into: store, on: loop)
        let address = try server.listen(on: SocketAddress(options.bind, port: options.port))
        log.info("listening on \(address)")
        loop.run()
        return 0
    }
}
