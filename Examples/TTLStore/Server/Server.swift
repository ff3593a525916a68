import Glibc
import Logging
import RunLoopKit
import RunLoopUnix

/// Serves clients on one loop.
final class Server {
    struct Settings {
        var maximumClients = 10_000
        var idleTimeout: Duration?
        /// The number of bytes of replies after which a client has to read before more requests are performed.
        var mark = 128 * 1024
        /// The number of bytes of output after which a client that does not read its notices is closed. Replies alone
        /// never reach this.
        var maximumOutput = 32 * 1024 * 1024
        /// A bound on the incomplete requests of all loops' clients together; `nil` for no bound.
        var inputBudget: Connection.InputBudget?
    }

    let commands: Commands
    private let loop: RunLoop
    private let settings: Settings
    private let census: Census
    private let journal: Journal
    private let writer: ChangeWriter?
    private let log: Logger
    private var listeners: [Listener] = []
    private var clients: [Int: Client] = [:]
    // This and the following properties, and the store's entries, are unchecked as in `Connection`: one thread, and no
    // command calls the server.
    @exclusivity(unchecked) private var reply = Reply()
    /// The notices for the client whose requests are being performed.
    @exclusivity(unchecked) private var notices: [UInt8] = []
    /// Clients whose replies are held.
    @exclusivity(unchecked) private var holding: [Client] = []
    private var afterLastClient: (() -> Void)?
    private let performed: Census.Performed

    init(
        _ commands: Commands, on loop: RunLoop, _ settings: Settings, _ census: Census, _ journal: Journal,
        _ writer: ChangeWriter?, _ log: Logger
    ) {
        self.loop = loop
        self.commands = commands
        self.settings = settings
        self.census = census
        self.journal = journal
        self.writer = writer
        self.log = log
        performed = census.join()
        commands.channels.send = { [unowned self] in notify($0, $1.bytes) }
        writer?.writtenHandler = { [unowned self] in release() }
        commands.information = { [unowned self] in information + [journal.information] }
    }

    /// The server's sections of INFO.
    private var information: [Commands.Information] {
        [
            (
                "Server",
                [
                    ("redis_version", Commands.versionOfRedis), ("redis_mode", "standalone"),
                    ("server_name", "ttlstore"), ("process_id", "\(getpid())"),
                ]
            ),
            ("Clients", [("connected_clients", "\(census.clients)"), ("maxclients", "\(settings.maximumClients)")]),
            (
                "Stats",
                [
                    ("total_connections_received", "\(census.served)"),
                    ("total_commands_processed", "\(census.performed)"),
                ]
            ),
        ]
    }

    // MARK: Listening

    func listen(on address: Endpoint) throws -> Endpoint {
        let listener = try Listener(address: address, on: loop) { [unowned self] _, descriptor, peer in
            accept(descriptor, peer)
        }
        return add(listener)
    }

    /// Listens on a socket that the service manager has opened.
    func listen(onInherited descriptor: Int32) throws -> Endpoint {
        let listener = try Listener(inherited: descriptor, on: loop) { [unowned self] _, descriptor, peer in
            accept(descriptor, peer)
        }
        return add(listener)
    }

    private func add(_ listener: Listener) -> Endpoint {
        listener.errorHandler = { [log] _, error in log.warning("\(error)") }
        listeners.append(listener)
        return listener.address
    }

    func stopListening() {
        for listener in listeners { listener.finish() }
        listeners = []
    }

    /// Serves a client that has connected.
    func accept(_ descriptor: Int32, _ peer: Endpoint) {
        var limits = Connection.Limits()
        let bounds = RequestParser.Limits()
        // The parser refuses a request that is too long, with an error, before the connection would.
        limits.maximumInput = bounds.memory
        limits.inputBudget = settings.inputBudget
        limits.idleTimeout = settings.idleTimeout
        limits.maximumOutput = settings.maximumOutput
        let number = census.nextNumber()
        guard census.enter(atMost: settings.maximumClients) else {
            let refused = Connection(adopting: descriptor, on: loop) { $1.count }
            refused.write("-ERR max number of clients reached\r\n")
            try? refused.start()
            return refused.finish(within: .seconds(1))
        }
        let client = Client(Session(number: number), peer)
        let connection = Connection(adopting: descriptor, on: loop, limits: limits) { [self] connection, bytes in
            receive(client, on: connection, bytes)
        }
        client.connection = connection
        clients[client.session.number] = client
        connection.closeHandler = { [unowned self] _, reason in closed(client, reason) }
        connection.endHandler = { [unowned self] _ in
            client.hasEnded = true
            finishIfDone(client)
        }
        connection.drainHandler = { [unowned self] _ in proceed(client) }
        do {
            try connection.start()
        } catch {
            log.warning("a client cannot be served: \(error)")
        }
    }

    private func closed(_ client: Client, _ reason: Connection.CloseReason) {
        census.leave()
        commands.channels.remove(client.session)
        clients[client.session.number] = nil
        switch reason {
        case .closed, .ended: break
        case .outputLimit: log.warning("client \(client.peer) does not read its notices; closed")
        case .inputLimit: log.warning("incomplete requests take too much memory; closed client \(client.peer)")
        default: log.debug("client \(client.peer): \(reason)")
        }
        guard clients.isEmpty, let afterLastClient else { return }
        self.afterLastClient = nil
        afterLastClient()
    }

    // MARK: Serving

    /// Performs the complete requests, and sends all replies together.
    private func receive(_ client: Client, on connection: Connection, _ bytes: Span<UInt8>) -> Int {
        guard !client.isHolding else {
            pause(client)
            return 0
        }
        client.isPaused = false
        reply.removeAll()
        commands.store.hasChanged = false
        client.isCurrent = true
        let batch = bytes.withUnsafeBufferPointer {
            commands.perform(all: $0, &client.parser, client.session, &reply, mark: settings.mark)
        }
        client.isCurrent = false
        performed.requests.value += batch.requests
        client.isLast = batch.end == .last
        connection.heldInput = client.parser.heldBytes
        if let writer, reply.count > 0,
            let position = writer.queue.unsafePosition(hasChanged: commands.store.hasChanged, now: loop.now)
        {
            hold(client, until: position)
            writer.writeSoon()
        } else {
            connection.write(reply.memory.span.extracting(first: reply.count))
            if !notices.isEmpty { connection.write(notices) }
        }
        if !notices.isEmpty { notices = [] }
        if batch.end == .mark, batch.used < bytes.count {
            pause(client)
            // Other clients have their turn first.
            loop.perform { [unowned self] in proceed(client) }
        }
        finishIfDone(client)
        return batch.used
    }

    /// Defers the remaining input, and any further input.
    private func pause(_ client: Client) {
        client.isPaused = true
        client.connection.pauseReading()
    }

    /// Continues with the remaining input once the client has read enough. Until then, the connection has a handler
    /// that calls this.
    private func proceed(_ client: Client) {
        guard client.isPaused, !client.isHolding, client.connection.isOpen,
            client.connection.pendingOutput <= client.connection.limits.highWatermark
        else { return }
        client.connection.resumeReading()
    }

    private func finishIfDone(_ client: Client) {
        guard client.hasEnded || client.isLast else { return }
        if !client.isPaused && !client.isHolding { client.connection.finish() }
    }

    // MARK: Replies that wait

    private func hold(_ client: Client, until position: Int) {
        client.held += reply.memory[..<reply.count]
        client.held += notices
        client.heldUntil = position
        holding.append(client)
    }

    /// Sends the held replies for which the log is now safe enough.
    func release() {
        guard !holding.isEmpty, let position = writer?.queue.safePosition(now: loop.now) else { return }
        let released = holding.filter { $0.heldUntil! <= position }
        holding.removeAll { $0.heldUntil! <= position }
        for client in released {
            client.heldUntil = nil
            client.connection.write(client.held)
            // The capacity serves the next replies, if it is not large.
            client.held.removeAll(keepingCapacity: client.held.capacity <= 4096)
            proceed(client)
            finishIfDone(client)
        }
    }

    /// Sends an unsolicited message to a client, after the replies to its requests.
    private func notify(_ session: Session, _ bytes: [UInt8]) {
        guard let client = clients[session.number] else { return }
        if client.isCurrent {
            notices += bytes
        } else if client.isHolding {
            client.held += bytes
        } else {
            client.connection.write(bytes)
        }
    }

    // MARK: Stopping

    /// The clients in the order of their arrival, which is the same in each run of a simulation.
    private var inOrder: [Client] { clients.sorted { $0.key < $1.key }.map(\.value) }

    /// Sends the pending replies, and closes; calls `done` when the last client has gone.
    func drain(_ done: @escaping () -> Void) {
        afterLastClient = done
        for client in inOrder {
            client.isLast = true
            client.isPaused = false
            finishIfDone(client)
        }
        if clients.isEmpty, let afterLastClient {
            self.afterLastClient = nil
            afterLastClient()
        }
    }

    func closeAll() {
        for client in inOrder { client.connection.close() }
    }
}
