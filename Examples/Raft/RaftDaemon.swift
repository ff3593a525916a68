import Glibc
import Logging
import RunLoopKit
import RunLoopUnix

/// A member of the cluster as a daemon, from its start to its end.
final class RaftDaemon {
    let node: Node
    private let options: Raft
    private let log: Logger
    private let daemon: Daemon
    private let store: Store
    private let server: Server

    /// The reason why the daemon cannot start, in one line, with its exit status.
    struct Refusal: Error {
        let text: String
        let status: Int32
    }

    /// - Throws: ``Refusal`` if the service manager's variables are invalid, because otherwise the manager would wait
    ///   for a message that never comes. Thrown also if the journal cannot be kept or read.
    init(_ options: Raft, _ log: Logger) throws {
        (self.options, self.log) = (options, log)
        let loop = RunLoop.current
        let manager: ServiceManager
        do {
            // Before other threads exist.
            manager = try ServiceManager()
        } catch {
            throw Refusal(text: "\(error)", status: Status.configuration)
        }
        daemon = Daemon(loop: loop, manager: manager, drainLimit: .seconds(1))
        let journal: Journal
        do {
            journal = try Journal(at: options.journal)
        } catch {
            throw Refusal(text: "\(error)", status: Status.cannotCreate)
        }
        let stored: Member.Stored
        do {
            stored = try journal.load()
        } catch {
            throw Refusal(text: "\(error)", status: Status.badData)
        }
        store = Store(journal, on: loop)
        let member = Member(options.name, among: options.member.map(\.name), stored, batch: options.batch)
        node = Node(
            member, at: options.member, Node.Settings(timeout: .milliseconds(options.timeout)), store, on: loop, log)
        server = Server(node, on: loop, log)
        store.errorHandler = { [daemon] error in
            log.critical("\(error); it is unknown which records are stored")
            daemon.stop(status: Status.ioError)
        }
    }

    /// - Returns: the exit status.
    func run() throws -> Int32 {
        defer {
            node.stop()
            server.close()
        }
        daemon.errorHandler = { [log] _, error in log.warning("\(error)") }
        try daemon.handleSignals { [log] in log.info("\($0)") }
        try RunLoop.current.dump(on: .user1)
        do {
            try server.listen(on: Endpoint(options.bind, port: options.own.port))
        } catch {
            throw Refusal(text: "\(error)", status: Status.unavailable)
        }
        node.start()
        daemon.add(server.connections, name: "clients")
        let watchdog = Watchdog(daemon.manager, loop: .current)
        defer { watchdog?.invalidate() }
        let status = daemon.run()
        log.info("stopped")
        return status
    }
}

/// The statuses of sysexits.h, which the C library's module does not have.
enum Status {
    static let badData: Int32 = 65
    static let unavailable: Int32 = 69
    static let cannotCreate: Int32 = 73
    static let ioError: Int32 = 74
    static let configuration: Int32 = 78
}
