import Logging
import RunLoopKit
import RunLoopUnix

/// The servers of all loops that serve clients: the daemon's own loop, or the loops of a group. Any thread, except
/// where a method says otherwise.
final class Servers: Sendable {
    private let group: LoopGroup?
    private let servers: [LoopBound<Server>]
    private let log: Logger

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
        self.log = log
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
            group = nil
            servers = [LoopBound(makeServer(store, channels, writer, loop), loop: loop)]
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
    }

    /// The loops beside the daemon's own.
    var loops: [RunLoop.Remote] { group?.loops ?? [] }

    /// Calls a block with each server, on its loop.
    func onEach(_ body: @escaping @Sendable (Server) -> Void) {
        for server in servers {
            if server.remote.isCurrent {
                body(server.value)
            } else {
                server.remote.perform(inModes: .common) { _ in body(server.value) }
            }
        }
    }

    // MARK: Listening

    /// Listens on an address. Called on the daemon's loop.
    func listen(on address: Endpoint) throws -> Endpoint {
        guard let group else { return try servers[0].value.listen(on: address) }
        // Clients stay connected, so an even spread is worth a post for each.
        return try group.listen(on: address, spread: .inTurn, Servers.accept)
    }

    /// Listens on a socket that the service manager has opened. Called on the daemon's loop.
    func listen(onInherited descriptor: Int32) throws -> Endpoint {
        guard let group else { return try servers[0].value.listen(onInherited: descriptor) }
        return try group.listen(inherited: descriptor, Servers.accept)
    }

    private static let accept: LoopGroup.AcceptHandler = { loop, descriptor, peer in
        loop[own]?.accept(descriptor, peer)
    }

    // MARK: Stopping

    func stopListening(_ done: @escaping @Sendable () -> Void) {
        if let group { return group.stopAccepting(completion: done) }
        onEach { $0.stopListening() }
        done()
    }

    /// Sends the pending replies, and closes; calls `done` when the last client has gone.
    func drain(_ done: @escaping @Sendable () -> Void) {
        let last = AtLast(done)
        onEach { server in server.drain { withExtendedLifetime(last) {} } }
    }

    /// Closes everything that is open, and ends the threads. Called on the daemon's loop.
    func stop() {
        onEach { $0.closeAll() }
        group?.stop()
        group?.join()
    }

    /// Calls a block when its last owner has gone.
    private final class AtLast: Sendable {
        private let block: @Sendable () -> Void

        init(_ block: @escaping @Sendable () -> Void) {
            self.block = block
        }

        deinit {
            block()
        }
    }
}
