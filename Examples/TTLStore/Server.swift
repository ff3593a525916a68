import Glibc
import Logging
import RunLoopKit
import RunLoopUnix

/// Listens, and serves each client.
final class Server {
    struct Settings {
        var maximumClients = 10_000
        var idleTimeout: Duration?
        /// How many bytes of replies may wait for a client that does not read them.
        var maximumOutput = 64 * 1024 * 1024
    }

    private let loop: RunLoop
    private let commands: Commands
    private let settings: Settings
    private let log: Logger
    private var listeners: [Listener] = []
    private var clients: [ObjectIdentifier: Connection] = [:]
    // These, and the store's entries, are unchecked as in `Connection`: one thread, and no command calls the server.
    @exclusivity(unchecked) private var parser = RequestParser()
    @exclusivity(unchecked) private var reply = Reply()
    private var afterLastClient: (() -> Void)?

    private(set) var served = 0
    @exclusivity(unchecked) private(set) var performed = 0

    init(_ store: Store, on loop: RunLoop, _ settings: Settings, _ log: Logger) {
        self.loop = loop
        self.settings = settings
        self.log = log
        let facts = Facts()
        commands = Commands(store: store, loop: loop) { facts.list() }
        facts.server = self
    }

    /// What INFO says of the server.
    private final class Facts {
        weak var server: Server?

        func list() -> [(String, String)] {
            guard let server else { return [] }
            return [
                ("server_name", "ttlstore"), ("process_id", "\(getpid())"),
                ("connected_clients", "\(server.clients.count)"),
                ("total_connections_received", "\(server.served)"),
                ("total_commands_processed", "\(server.performed)"),
            ]
        }
    }

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

    private func accept(_ descriptor: Int32, _ peer: Endpoint) {
        var limits = Connection.Limits()
        limits.maximumInput = parser.limits.argumentSize + parser.limits.inlineSize
        limits.idleTimeout = settings.idleTimeout
        limits.maximumOutput = settings.maximumOutput
        let client = Connection(adopting: descriptor, on: loop, limits: limits) { [unowned self] client, bytes in
            receive(client, bytes)
        }
        guard clients.count < settings.maximumClients else {
            client.write("-ERR max number of clients reached\r\n")
            try? client.start()
            return client.finish(within: .seconds(1))
        }
        client.closeHandler = { [unowned self] client, reason in closed(client, peer, reason) }
        clients[ObjectIdentifier(client)] = client
        served += 1
        do {
            try client.start()
        } catch {
            log.warning("a client cannot be served: \(error)")
        }
    }

    private func closed(_ client: Connection, _ peer: Endpoint, _ reason: Connection.CloseReason) {
        clients[ObjectIdentifier(client)] = nil
        switch reason {
        case .closed, .ended: break
        case .outputLimit: log.warning("client \(peer) reads too slowly; closed")
        default: log.debug("client \(peer): \(reason)")
        }
        guard clients.isEmpty, let afterLastClient else { return }
        self.afterLastClient = nil
        afterLastClient()
    }

    /// Carries out the requests that are complete, and sends all replies together.
    private func receive(_ client: Connection, _ bytes: Span<UInt8>) -> Int {
        reply.removeAll()
        let batch = bytes.withUnsafeBufferPointer {
            // With more than may wait the client is closed anyway; a few requests can ask for more than the memory.
            commands.perform(all: $0, &parser, &reply, limit: settings.maximumOutput)
        }
        performed += batch.requests
        client.write(reply.bytes)
        if batch.isLast { client.finish(within: .seconds(1)) }
        return batch.used
    }

    // MARK: Stopping

    func stopListening() {
        for listener in listeners { listener.close() }
        listeners = []
    }

    /// Lets what has been replied go out, and closes; calls `done` when the last client has gone.
    func drain(_ done: @escaping () -> Void) {
        afterLastClient = done
        for client in clients.values { client.finish() }
        if clients.isEmpty, let afterLastClient {
            self.afterLastClient = nil
            afterLastClient()
        }
    }

    func closeAll() {
        for client in clients.values { client.close() }
    }
}
