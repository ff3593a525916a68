import Glibc
import Logging
import RunLoopKit
import RunLoopUnix

/// The store as a daemon, from its start to its end.
final class StoreDaemon {
    private let options: TTLStore
    private let log: Logger
    private let inherited: [ActivatedSocket]
    private let loop: RunLoop
    private let store: Store
    private let server: Server
    private let snapshot: Snapshot?
    private let daemon: Daemon

    /// - Throws: ``Refusal`` if the service manager's variables are not what they should be: to go on would leave it
    ///   waiting for a word that never comes.
    init(_ options: TTLStore, _ log: Logger) throws {
        self.options = options
        self.log = log
        let manager: ServiceManager
        do {
            // Before anything else opens descriptors: one of those would be taken for a socket that is missing.
            inherited = try ActivatedSocket.all()
            manager = try ServiceManager()
        } catch {
            throw Refusal(text: "\(error)", status: Status.configuration)
        }
        loop = .current
        store = Store(on: loop)
        var settings = Server.Settings()
        settings.maximumClients = options.maxClients
        if options.idleTimeout > 0 { settings.idleTimeout = .seconds(options.idleTimeout) }
        server = Server(store, on: loop, settings, log)
        snapshot = options.snapshot.map(Snapshot.init)
        daemon = Daemon(loop: loop, manager: manager, drainLimit: .seconds(5))
    }

    /// Why the daemon cannot start, in one line, with its exit status.
    struct Refusal: Error {
        let text: String
        let status: Int32
    }

    /// - Returns: the exit status.
    func run() throws -> Int32 {
        daemon.errorHandler = { [log] error in log.warning("\(error)") }
        for remark in daemon.manager.remarks { log.info("\(remark)") }
        try connectSignals()
        try load()
        try listen()
        connectStages()
        let watchdog = Watchdog(daemon.manager, loop: loop)
        defer { watchdog?.invalidate() }
        let status = daemon.run()
        log.info("stopped")
        return status
    }

    // MARK: Starting

    /// Before anything that takes time: a signal that comes meanwhile waits for the loop to run.
    private func connectSignals() throws {
        // A file that may not grow is an error of the snapshot, and not the end.
        try Signal.ignore(Signal(rawValue: SIGXFSZ))
        try daemon.handleSignals { [log] in log.info("\($0)") }
        try loop.dump(on: .user1)
    }

    private func load() throws {
        do {
            try snapshot?.load(into: store, on: loop)
        } catch {
            throw Refusal(text: "\(error)", status: Status.badData)
        }
        if store.count > 0 { log.info("\(store.count) keys loaded") }
    }

    private func listen() throws {
        do {
            var addresses: [Endpoint] = []
            for socket in inherited { addresses.append(try server.listen(onInherited: socket.fileDescriptor)) }
            if inherited.isEmpty, options.port > 0 {
                addresses.append(try server.listen(on: Endpoint(options.bind, port: options.port)))
            }
            if let path = options.unix { addresses.append(try server.listen(on: Endpoint(path: path))) }
            guard !addresses.isEmpty else {
                throw Refusal(text: "there is nothing to listen on: give --port or --unix", status: Status.usage)
            }
            log.info("listening on \(addresses.map(\.description).joined(separator: ", "))")
        } catch let error as SystemError {
            throw Refusal(text: "\(error)", status: Status.unavailable)
        }
    }

    // MARK: Stopping and reloading

    private func connectStages() {
        daemon.onStop(.stopAccepting, name: "listeners") { [server] in server.stopListening() }
        daemon.onStop(.drain, name: "clients") { [server] done in server.drain { done() } }
        daemon.onStop(.exit, order: 0, name: "clients") { [server] in server.closeAll() }
        daemon.onStop(.exit, order: 1, name: "snapshot") { [self] in
            // What was acknowledged and cannot be kept must not look like a clean end.
            if !save() { daemon.stop(status: Status.ioError) }
        }
        daemon.onReload(name: "snapshot") { [self] in _ = save() }
    }

    /// - Returns: `false` if there is a file to write and it could not be written; then the old one is as it was.
    private func save() -> Bool {
        guard let snapshot else { return true }
        do {
            try snapshot.write(store, on: loop)
            log.info("\(store.count) keys written to \(snapshot.path)")
            return true
        } catch {
            log.error("\(error); the keys are kept in memory, and the old snapshot is as it was")
            return false
        }
    }
}

/// The statuses of sysexits.h, which the C library's module does not have.
enum Status {
    static let usage: Int32 = 64
    static let badData: Int32 = 65
    static let unavailable: Int32 = 69
    static let ioError: Int32 = 74
    static let configuration: Int32 = 78
}
