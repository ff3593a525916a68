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
    private let persistence: Persistence
    private let daemon: Daemon
    private let recorder: FlightRecorder?

    /// - Throws: ``Refusal`` if the service manager's variables are invalid, because otherwise the manager would wait
    ///   for a message that never comes. Thrown also if a requested file cannot be kept.
    init(_ options: TTLStore, _ log: Logger) throws {
        self.options = options
        self.log = log
        let manager: ServiceManager
        do {
            // Before any code opens descriptors: one of these would be mistaken for a missing socket.
            inherited = try ActivatedSocket.all()
            manager = try ServiceManager()
        } catch {
            throw Refusal(text: "\(error)", status: Status.configuration)
        }
        loop = .current
        store = Store(on: loop, sharing: Table(isShared: options.loops > 1))
        do {
            recorder = try options.flight.map { [loop] in try FlightRecorder(loop, at: $0) }
            persistence = try Persistence(options, store, on: loop, log)
        } catch {
            throw Refusal(text: "\(error)", status: Status.cannotCreate)
        }
        daemon = Daemon(loop: loop, manager: manager, drainLimit: .seconds(5), exitLimit: .seconds(60))
    }

    /// The reason why the daemon cannot start, in one line, with its exit status.
    struct Refusal: Error {
        let text: String
        let status: Int32
    }

    /// - Returns: the exit status.
    func run() throws -> Int32 {
        daemon.errorHandler = { [log] _, error in log.warning("\(error)") }
        for remark in daemon.manager.remarks { log.info("\(remark)") }
        try connectSignals()
        do {
            try persistence.load()
        } catch {
            throw Refusal(text: "\(error)", status: Status.badData)
        }
        let servers = try Servers(options, store, on: loop, persistence.journal, persistence.configuration, log)
        persistence.connect(servers)
        persistence.lossHandler = { [daemon] _ in daemon.stop(status: Status.ioError) }
        connectStages(servers)
        try listen(servers)
        let watchdog = Watchdog(daemon.manager, loop: loop, watching: servers.loops)
        defer { watchdog?.invalidate() }
        let status = daemon.run()
        guard persistence.isClosed else {
            log.error("stopped in a hurry; unwritten changes are lost")
            return Status.ioError
        }
        log.info("stopped")
        return status
    }

    // MARK: Starting

    /// Connects the signals, before any work that takes time: a signal that arrives meanwhile waits for the loop to
    /// run.
    private func connectSignals() throws {
        // A file that may not grow is an error of the snapshot, and must not end the process.
        try Signal.ignore(Signal(rawValue: SIGXFSZ))
        try daemon.handleSignals { [log] in log.info("\($0)") }
        try loop.dump(on: .user1)
    }

    private func listen(_ servers: Servers) throws {
        do {
            var addresses: [Endpoint] = []
            for socket in inherited { addresses.append(try servers.listen(onInherited: socket.fileDescriptor)) }
            if inherited.isEmpty, options.port > 0 {
                addresses.append(try servers.listen(on: Endpoint(options.bind, port: options.port)))
            }
            if let path = options.unix { addresses.append(try servers.listen(on: Endpoint(path: path))) }
            guard !addresses.isEmpty else {
                throw Refusal(text: "there is nothing to listen on: give --port or --unix", status: Status.usage)
            }
            log.info("listening on \(addresses.map(\.description).joined(separator: ", "))")
        } catch let error as SystemError {
            throw Refusal(text: "\(error)", status: Status.unavailable)
        }
    }

    // MARK: Stopping and reloading

    private func connectStages(_ servers: Servers) {
        daemon.add(servers.connections, name: "clients")
        daemon.onStop(.exit, order: 0, name: "threads") { servers.stop() }
        daemon.onStop(.exit, order: 1, name: "files") { [daemon, persistence] done in
            persistence.close { isSaved in
                // Acknowledged changes that cannot be kept must not look like a clean end.
                if !isSaved { daemon.stop(status: Status.ioError) }
                done()
            }
        }
        daemon.onReload(name: "files") { [persistence] done in persistence.save { _ in done() } }
    }
}

/// The statuses of sysexits.h, which the C library's module does not have.
enum Status {
    static let usage: Int32 = 64
    static let badData: Int32 = 65
    static let unavailable: Int32 = 69
    static let cannotCreate: Int32 = 73
    static let ioError: Int32 = 74
    static let configuration: Int32 = 78
}
