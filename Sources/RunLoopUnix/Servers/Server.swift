@_spi(Ports) public import RunLoopKit

/// A server that accepts connections and keeps them: it counts them, limits their number, and lets them finish.
///
/// ```swift
/// let server = Server(on: loop) { connection, peer in
///     connection.receiveHandler = { connection, bytes in
///         connection.write(bytes)  // an echo
///         return bytes.count
///     }
///     connection.closeHandler = { _, reason in print("\(peer): \(reason)") }
/// }
/// try server.listen(on: Endpoint("127.0.0.1", port: 7000))
/// daemon.add(server)
/// ```
///
/// The closure receives each connection, which is open and started, before anything is read from it, and sets its
/// handlers and limits. An asynchronous closure is a task for each connection instead, as in
/// ``Connection/withStream(_:)``.
///
/// A server on a ``LoopGroup`` has connections on all loops of the group, and calls the closure on the loop of each.
/// The server itself belongs to the thread of the loop that it was made on, and is not `Sendable`. That loop keeps it,
/// and runs on, while it listens or has connections; you need not keep it. ``errorHandler`` is given the errors on the
/// way to a connection.
///
/// A connection that moves to another loop, or becomes a side of a ``Relay``, leaves its server.
public final class Server {
    /// The effect of ``Options/maximumConnections`` on further connections. A value and `Sendable`.
    public enum Overflow: Sendable, Hashable {
        /// Further connections wait in the system's queue, and are served when others have closed. On several loops, a few that were
        /// accepted already wait in the process.
        case wait
        /// Further connections receive these bytes, which may be none, and are finished within a second. At most 64 of each loop
        /// receive them at a time; others are closed without an answer.
        case refuse(answer: [UInt8] = [])
    }

    /// The options of a server. A value and `Sendable`.
    public struct Options: Sendable {
        /// The most connections that are open at a time, on all loops together, at least 1; `nil`, the default, means
        /// no limit.
        public var maximumConnections: Int?
        /// The effect of ``maximumConnections``; by default ``Overflow/wait``.
        public var overflow = Overflow.wait

        /// Creates options without a limit.
        public init() {}
    }

    /// Called when a connection could not be accepted or started, when the closure has thrown an error, and when a task
    /// of a connection has ended with one, such as ``Connection/ClosedError`` for a peer that was lost. The server
    /// continues. On the thread of the server's loop, in its modes. Without it, `RunLoop.trace` receives the error.
    public var errorHandler: ((Server, any Error) -> Void)?

    let loop: RunLoop
    private let group: LoopGroup?
    let common: ServerPart.Common
    let parts: [LoopBound<ServerPart>]
    /// The number of parts whose loops have not ended.
    private var livingParts: Int
    var isEnding = false
    /// The source that keeps runs of the server's loop going while other loops serve.
    var presence: CustomSource?

    /// A server on one loop whose connections have handlers. Call it on the loop's thread, and then
    /// ``listen(on:options:spread:file:line:)``.
    ///
    /// - Parameters:
    ///   - loop: the loop that accepts and serves.
    ///   - modes: the modes in which it does.
    ///   - options: the options of the server.
    ///   - serve: called with each connection and its peer's address, on the loop's thread. Bytes that it writes are
    ///     sent when it returns. If it throws, the connection is closed. Kept until the server is closed.
    public convenience init(
        on loop: RunLoop, inModes modes: RunLoop.Modes = .common, options: Options = Options(),
        serve: @escaping (Connection, Endpoint) throws -> Void, file: StaticString = #fileID, line: UInt32 = #line
    ) {
        self.init(on: loop, nil, modes, options, RunLoop.Origin(file: file, line: line)) { loop, common in
            [LoopBound(ServerPart(on: loop, common, .handlers(serve)), loop: loop)]
        }
    }

    /// A server on one loop that has a task for each connection. Call it on the loop's thread, and then
    /// ``listen(on:options:spread:file:line:)``.
    ///
    /// - Parameters:
    ///   - loop: the loop that accepts and serves.
    ///   - modes: the modes in which it does.
    ///   - options: the options of the server.
    ///   - isolation: the isolation of the caller. If it is the main actor, as in `main.swift`, so is the closure's, and the
    ///     loop of the main thread serves the main actor from then on.
    ///   - serve: the task of a connection, on the loop's thread. When it returns, the connection is finished; when it
    ///     throws, it is closed. ``close()`` cancels it.
    public convenience init(
        on loop: RunLoop, inModes modes: RunLoop.Modes = .common, options: Options = Options(),
        isolation: (any Actor)? = #isolation,
        serve: nonisolated(nonsending) @escaping (Connection, Endpoint) async throws -> Void,
        file: StaticString = #fileID, line: UInt32 = #line
    ) {
        // Where code is isolated to the main actor, so is the closure.
        if isolation === MainActor.shared { loop.serveMainActor(forTasksIn: modes) }
        self.init(on: loop, nil, modes, options, RunLoop.Origin(file: file, line: line)) { loop, common in
            [LoopBound(ServerPart(on: loop, common, .tasks(serve)), loop: loop)]
        }
    }

    /// A server on the loops of a group, in the common modes, whose connections have handlers. It belongs to the
    /// calling thread's loop, and blocks that thread until each loop of the group has its part.
    ///
    /// - Parameters:
    ///   - group: the loops that serve.
    ///   - options: the options of the server.
    ///   - serve: called with each connection, on the thread of its loop.
    /// - Throws: `RunLoop.WaitError` if a loop of the group has ended.
    @available(*, noasync, message: "it blocks its thread; make the server in a synchronous function")
    public convenience init(
        on group: LoopGroup, options: Options = Options(),
        serve: @escaping @Sendable (Connection, Endpoint) throws -> Void, file: StaticString = #fileID,
        line: UInt32 = #line
    ) throws {
        try self.init(on: .current, group, .common, options, RunLoop.Origin(file: file, line: line)) { _, common in
            try group.parts { ServerPart(on: $0, common, .handlers(serve)) }
        }
    }

    /// A server on the loops of a group, in the common modes, that has a task for each connection. It belongs to the
    /// calling thread's loop, and blocks that thread until each loop of the group has its part.
    ///
    /// - Parameters:
    ///   - group: the loops that serve.
    ///   - options: the options of the server.
    ///   - serve: the task of a connection, on the thread of its loop.
    /// - Throws: `RunLoop.WaitError` if a loop of the group has ended.
    @available(*, noasync, message: "it blocks its thread; make the server in a synchronous function")
    public convenience init(
        on group: LoopGroup, options: Options = Options(),
        serve: nonisolated(nonsending) @escaping @Sendable (Connection, Endpoint) async throws -> Void,
        file: StaticString = #fileID, line: UInt32 = #line
    ) throws {
        try self.init(on: .current, group, .common, options, RunLoop.Origin(file: file, line: line)) { _, common in
            try group.parts { ServerPart(on: $0, common, .tasks(serve)) }
        }
    }

    private init(
        on loop: RunLoop, _ group: LoopGroup?, _ modes: RunLoop.Modes, _ options: Options, _ origin: RunLoop.Origin,
        _ makeParts: (RunLoop, ServerPart.Common) throws -> [LoopBound<ServerPart>]
    ) rethrows {
        require(
            options.maximumConnections ?? 1 >= 1, "a server's maximumConnections is at least 1, or nil for no limit")
        let remote = ServerRemote(loop.remote, modes)
        (self.loop, self.group) = (loop, group)
        common = ServerPart.Common(
            options, modes, origin, report: { error in remote.post { $0.report(error) } },
            tellOfRoom: { remote.post { $0.tellOfRoom() } }, partEnded: { remote.post { $0.partEnded() } })
        parts = try makeParts(loop, common)
        livingParts = parts.count
        remote.server = self
    }

    private func partEnded() {
        assert(livingParts > 0, "more parts of a server end than it has")
        livingParts -= 1
        if livingParts == 0 { forget() }
    }

    /// Lets the loop end without this server, which neither listens nor has connections.
    func forget() {
        loop[openServers].remove(self)
        presence.take()?.invalidate()
    }

    /// A function that puts a stream of its own over the stream of an accepted socket.
    @_spi(Ports) public typealias Layer = @Sendable (any ByteStream) throws -> any ByteStream

    /// Puts a stream between later connections and their descriptors.
    @_spi(Ports) public func setLayer(_ layer: @escaping Layer) {
        common.layer = layer
    }

    // MARK: Listening

    /// The number of connections that are open, on all loops. A connection counts until its close handler has returned.
    public var connectionCount: Int { common.census.open }

    /// The number of connections that were refused because of ``Options/maximumConnections``.
    public var refusedCount: Int { common.census.refused }

    /// Listens on an address, beside those that it listens on already. On the thread of the server's loop. On a group
    /// it blocks that thread until all loops listen, and the connections are spread as by
    /// ``LoopGroup/listen(on:options:spread:_:)``.
    ///
    /// - Parameters:
    ///   - address: the address; with port 0 the system chooses a port.
    ///   - options: the options of the listeners.
    ///   - spread: how connections reach the loops of a group; see ``LoopGroup/listen(on:options:spread:_:)``.
    /// - Returns: the address, with the port that the system chose.
    /// - Throws: ``SystemError``, for example with `EADDRINUSE`, as a ``Listener`` does; `RunLoop.WaitError` if a loop
    ///   of the group has ended.
    @discardableResult
    public func listen(
        on address: Endpoint, options: Listener.Options = Listener.Options(), spread: LoopGroup.Spread? = nil,
        file: StaticString = #fileID, line: UInt32 = #line
    ) throws -> Endpoint {
        try listen { [parts, common] in
            if let group {
                return try group.listen(on: address, options: options, spread: spread, made: made, accepted)
            }
            let part = parts[0].value
            return part.listen(
                with: try Listener(
                    address: address, on: loop, inModes: common.modes, options: options,
                    handler: { [unowned part] in part.accepted($1, $2, by: $0) }, file: file, line: line))
        }
    }

    /// Listens on a descriptor that listens already, for example one from a service manager; see ``ActivatedSocket``.
    /// The server owns it from now on. On the thread of the server's loop.
    ///
    /// - Parameters:
    ///   - descriptor: the listening descriptor.
    ///   - options: the options of the listener.
    /// - Returns: the address that the descriptor listens on.
    /// - Throws: ``SystemError`` with `EINVAL` if the descriptor does not listen; ``/RunLoopKit/DescriptorError`` if it
    ///   cannot be watched; `RunLoop.WaitError` if a loop of the group has ended.
    @discardableResult
    public func listen(
        inherited descriptor: Int32, options: Listener.Options = Listener.Options(), file: StaticString = #fileID,
        line: UInt32 = #line
    ) throws -> Endpoint {
        try listen { [parts, common] in
            if let group { return try group.listen(inherited: descriptor, options: options, made: made, accepted) }
            let part = parts[0].value
            return part.listen(
                with: try Listener(
                    inherited: descriptor, on: loop, inModes: common.modes, options: options,
                    handler: { [unowned part] in part.accepted($1, $2, by: $0) }, file: file, line: line))
        }
    }

    private func listen(_ body: () throws -> Endpoint) throws -> Endpoint {
        require(!isEnding, "a server that shuts down listens on no further address")
        let address = try body()
        loop[openServers].insert(self)
        if group != nil, presence == nil {
            let source = CustomSource()
            source.name = "server (\(common.origin))"
            loop.add(source, forMode: common.modes)
            presence = source
        }
        return address
    }

    /// Called on the thread of a group's loop with its listener.
    private var made: @Sendable (RunLoop, Listener) -> Void {
        { [parts] _, listener in parts.current.add(listener) }
    }

    private var accepted: LoopGroup.AcceptHandler {
        { [parts] _, descriptor, peer in parts.current.accepted(descriptor, peer, by: nil) }
    }

    private func report(_ error: any Error) {
        if let errorHandler { return errorHandler(self, error) }
        loop.emit(.ignored("an error of a server (\(common.origin)) without an error handler: \(error)"))
    }

    private func tellOfRoom() {
        for part in parts { part.remote.perform(inModes: common.modes) { _ in part.value.findRoom() } }
    }
}

@available(*, unavailable, message: "a server belongs to the thread of its loop")
extension Server: Sendable {}
