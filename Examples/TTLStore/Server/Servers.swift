import Logging
import RunLoopKit
import RunLoopUnix

/// The servers of all loops that serve clients: the daemon's own loop, or the loops of a group. On the daemon's loop.
final class Servers {
    private let group: LoopGroup?
    /// Accepts the clients of all loops, and keeps their connections. On the daemon's loop.
    let connections: RunLoopUnix.Server
    private let servers: [LoopBound<Server>]

    /// The server of each of the group's loops.
    private static let own = RunLoop.Local<Server?> { _ in nil }

    /// Makes the servers. Called on the daemon's loop.
    ///
    /// - Parameters:
    ///   - store: the store of the daemon's loop.
    ///   - configuration: the entries of CONFIG GET besides the commands' own.
    init(
        _ options: TTLStore, _ store: Store, on loop: RunLoop, _ journal: Journal, _ configuration: [String: String],
        _ log: Logger
    ) throws {
        let (audience, census) = (Audience(), Census())
        let connect = { @Sendable (store: Store, loop: RunLoop) in
            let channels = Channels(audience, on: loop)
            store.expiryHandler = { channels.tellAll(ofExpired: $0) }
            return (channels, journal.follow(store, on: loop))
        }
        // One for all loops, because they share the budget in it.
        let settings = options.serverSettings
        let makeServer = { @Sendable (store: Store, channels: Channels, writer: ChangeWriter?, loop: RunLoop) in
            let commands = Commands(store: store, channels: channels, settings: options.commandSettings)
            commands.configuration = configuration
            return Server(commands, on: loop, settings, census, journal, writer, log)
        }
        // Loaded keys expire on the daemon's loop, regardless of the loops that serve clients.
        let (channels, writer) = connect(store, loop)
        guard options.loops > 1 else {
            let server = makeServer(store, channels, writer, loop)
            group = nil
            servers = [LoopBound(server, loop: loop)]
            connections = RunLoopUnix.Server(on: loop, options: options.connectionOptions, serve: server.serve)
            connections.errorHandler = { _, error in log.warning("\(error)") }
            return
        }
        let table = store.table
        let bound = Shared<[LoopBound<Server>]>([])
        group = try LoopGroup(count: options.loops, name: "clients") { loop, _ in
            let store = Store(on: loop, sharing: table)
            let (channels, writer) = connect(store, loop)
            let server = makeServer(store, channels, writer, loop)
            loop[Servers.own] = server
            bound.withLock { $0.append(LoopBound(server, loop: loop)) }
        }
        servers = bound.withLock { $0 }
        connections = try RunLoopUnix.Server(on: group!, options: options.connectionOptions) { connection, peer in
            RunLoop.current[Servers.own]?.serve(connection, peer)
        }
        connections.errorHandler = { _, error in log.warning("\(error)") }
    }

    /// The loops beside the daemon's own.
    var loops: [RunLoop.Remote] { group?.loops ?? [] }

    /// Calls a block with each server, on its loop.
    var each: Each { Each(servers: servers) }

    struct Each: Sendable {
        fileprivate let servers: [LoopBound<Server>]

        func callAsFunction(_ body: @escaping @Sendable (Server) -> Void) {
            for server in servers {
                if server.remote.isCurrent {
                    body(server.value)
                } else {
                    server.remote.perform(inModes: .common) { _ in body(server.value) }
                }
            }
        }
    }

    // MARK: Listening

    func listen(on address: Endpoint) throws -> Endpoint {
        // Clients stay connected, so an even spread is worth a post for each.
        try connections.listen(on: address, spread: .inTurn)
    }

    /// Listens on a socket that the service manager has opened.
    func listen(onInherited descriptor: Int32) throws -> Endpoint {
        try connections.listen(inherited: descriptor)
    }

    // MARK: Stopping

    /// Ends the threads.
    func stop() {
        group?.stop()
        group?.join()
    }
}
