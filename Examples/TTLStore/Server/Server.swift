import Glibc
import Logging
import RunLoopKit
import RunLoopUnix

/// Serves the clients of one loop.
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
    // This and the following properties, and the store's entries, are unchecked as in `Connection`: one thread, and no
    // command calls the server.
    @exclusivity(unchecked) private var reply = Reply()
    /// The notices for the client whose requests are being performed.
    @exclusivity(unchecked) private var notices: [UInt8] = []
    /// Clients whose replies are held.
    @exclusivity(unchecked) private var holding: [Client] = []
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
        commands.channels.send = { session, reply in session.deliver(reply.bytes) }
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

    // MARK: Serving

    /// Serves a client that has connected.
    func serve(_ connection: Connection, _ peer: Endpoint) {
        // The parser refuses a request that is too long, with an error, before the connection would.
        connection.limits.maximumInput = RequestParser.Limits().memory
        connection.limits.inputBudget = settings.inputBudget
        connection.limits.idleTimeout = settings.idleTimeout
        connection.limits.maximumOutput = settings.maximumOutput
        let client = Client(Session(number: census.enter()), connection, peer)
        client.session.deliver = { [unowned self, unowned client] in notify(client, $0) }
        connection.receiveHandler = { [self] connection, bytes in receive(client, on: connection, bytes) }
        connection.closeHandler = { [unowned self] _, reason in closed(client, reason) }
        connection.endHandler = { [unowned self] _ in
            client.hasEnded = true
            finishIfDone(client)
        }
        connection.drainHandler = { [unowned self] _ in proceed(client) }
    }

    private func closed(_ client: Client, _ reason: Connection.CloseReason) {
        census.leave()
        commands.channels.remove(client.session)
        switch reason {
        case .closed, .ended: break
        case .outputLimit: log.warning("client \(client.peer) does not read its notices; closed")
        case .inputLimit: log.warning("incomplete requests take too much memory; closed client \(client.peer)")
        default: log.debug("client \(client.peer): \(reason)")
        }
    }

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
    private func notify(_ client: Client, _ bytes: [UInt8]) {
        if client.isCurrent {
            notices += bytes
        } else if client.isHolding {
            client.held += bytes
        } else {
            client.connection.write(bytes)
        }
    }
}
