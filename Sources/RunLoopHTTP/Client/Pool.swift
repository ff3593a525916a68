#if Adapters
internal import NIOCore
internal import NIOHTTP1
internal import NIOHTTP2
internal import NIOTLS
@_spi(Ports) internal import RunLoopKit
internal import RunLoopNIO
internal import RunLoopTLS

/// The connections of a client to one origin, and the requests that wait for one. On the loop's thread.
final class Pool {
    /// A place for one exchange.
    struct Place {
        let handler: AnswerHandler
        /// True if the connection has had an exchange before, so that the server may be about to close it.
        let isUsed: Bool
    }

    /// A request that waits for a connection.
    private final class Waiter {
        let wait: NamedWait
        var connection: PooledConnection?

        init(_ loop: RunLoop) {
            wait = NamedWait(loop.remote, "waits for a connection to an HTTP server")
        }
    }

    private let origin: Origin
    private let loop: RunLoop
    private let modes: RunLoop.Modes
    private let options: HTTPClient.Options
    private let tls: TLSClientContext?
    /// All connections, and among them those without an exchange, the last used at the end.
    private var connections: [PooledConnection] = []
    private var idle: [PooledConnection] = []
    private var connecting = 0
    /// The connection of HTTP/2, which has all exchanges.
    private var multiplexed: PooledConnection?
    private var waiters: [Waiter] = []
    private var isClosed = false
    /// True if the client has gone, and further requests will not come.
    private var isRetired = false

    init(
        _ origin: Origin, on loop: RunLoop, inModes modes: RunLoop.Modes, _ options: HTTPClient.Options,
        tls: TLSClientContext?
    ) {
        (self.origin, self.loop, self.modes, self.options, self.tls) = (origin, loop, modes, options, tls)
    }

    var connectionCount: Int { connections.count }

    // MARK: Requests

    /// Waits for a connection that can have a further exchange.
    nonisolated(nonsending) func place() async throws -> Place {
        while true {
            if isClosed { throw HTTPClient.Failure.clientClosed }
            let connection = try await connection()
            let isUsed = connection.isUsed
            connection.isUsed = true
            // A connection that has agreed on HTTP/2 ends with the next request that finds it closed.
            if let handler = try await connection.handler() { return Place(handler: handler, isUsed: isUsed) }
            lost(connection)
        }
    }

    private nonisolated(nonsending) func connection() async throws -> PooledConnection {
        if let multiplexed { return multiplexed }
        if let connection = idle.popLast() {
            connection.idleTime.cancel()
            return connection
        }
        // The first connection shows the version of HTTP that the server speaks.
        let knowsVersion = !origin.isSecure || !connections.isEmpty
        if knowsVersion ? connections.count + connecting < options.connectionsPerOrigin : connecting == 0 { connect() }
        let waiter = Waiter(loop)
        waiters.append(waiter)
        do {
            try await waiter.wait.wait()
        } catch {
            waiters.removeAll { $0 === waiter }
            if let connection = waiter.connection { released(connection) }
            throw error
        }
        guard let connection = waiter.connection else { throw HTTPClient.Failure.clientClosed }
        return connection
    }

    // MARK: Connections

    private func connect() {
        connecting += 1
        let connection = PooledConnection(on: loop, inModes: modes, options, isSecure: origin.isSecure)
        connection.lost = { [self] in lost($0) }
        connection.released = { [self] in released($0) }
        var isReported = false
        connection.ready = { [self] result in
            guard !isReported else { return }
            isReported = true
            connecting -= 1
            switch result {
            case .success: stands(connection)
            case .failure(let error):
                waiters.first.map { end($0, throwing: HTTPClient.Failure.unreachable(error)) }
                // Those above the limit of connections, or behind the first one, have none under way.
                if waiters.count > connecting, !isClosed { connect() }
            }
        }
        var bootstrap = RunLoopClientBootstrap(group: loop.nio(inModes: modes))
            .connectTimeout(TimeAmount(options.connectTime))
            .channelOption(.maxMessagesPerRead, value: 1)
        if let tls { bootstrap = bootstrap.tls(tls) }
        let bound = NIOLoopBound(connection, eventLoop: loop.nio(inModes: modes))
        bootstrap.channelInitializer { channel in
            channel.eventLoop.makeCompletedFuture { try bound.value.prepare(channel) }
        }
        .connect(host: origin.host, port: origin.port).assumeIsolated().whenFailure { error in
            connection.ready(.failure(error))
        }
    }

    private func stands(_ connection: PooledConnection) {
        if isClosed { return connection.close() }
        connections.append(connection)
        guard connection.isMultiplexed else { return released(connection) }
        multiplexed = connection
        for waiter in waiters { give(connection, to: waiter) }
        waiters = []
    }

    private func released(_ connection: PooledConnection) {
        guard !connection.isMultiplexed, connections.contains(where: { $0 === connection }) else { return }
        assert(!idle.contains { $0 === connection }, "a connection is released twice")
        guard waiters.isEmpty else { return give(connection, to: waiters.removeFirst()) }
        if isRetired { return connection.close() }
        idle.append(connection)
        connection.idleTime.set(after: options.idleTime)
    }

    private func give(_ connection: PooledConnection, to waiter: Waiter) {
        waiter.connection = connection
        waiter.wait.end()
    }

    private func end(_ waiter: Waiter, throwing error: any Error) {
        waiters.removeAll { $0 === waiter }
        waiter.wait.end(throwing: error)
    }

    private func lost(_ connection: PooledConnection) {
        guard connections.contains(where: { $0 === connection }) else { return }
        connections.removeAll { $0 === connection }
        idle.removeAll { $0 === connection }
        if multiplexed === connection { multiplexed = nil }
        if !waiters.isEmpty, !isClosed { connect() }
    }

    /// Closes the unused connections, and the others when their exchanges have ended.
    func retire() {
        isRetired = true
        for connection in idle { connection.close() }
        multiplexed?.closeWhenUnused()
    }

    func close() {
        isClosed = true
        for waiter in waiters { waiter.wait.end(throwing: HTTPClient.Failure.clientClosed) }
        waiters = []
        for connection in connections { connection.close() }
    }
}
#endif
