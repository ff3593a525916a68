#if Adapters
internal import NIOCore
@_spi(Ports) public import RunLoopKit
@_spi(Ports) internal import RunLoopNIO
public import RunLoopTLS
@_spi(Ports) public import RunLoopUnix

/// A server for HTTP/1.1 and HTTP/2, on one loop or on the loops of a group.
///
/// ```swift
/// let server = HTTPServer(on: loop) { request in
///     switch (request.method, request.path) {
///     case (.get, "/"): .text("hello\n")
///     case (.post, "/echo"): HTTPServer.Response(body: try await request.body.collect(upTo: 65_536))
///     default: throw HTTPServer.Refusal(.notFound, "there is no \(request.path)")
///     }
/// }
/// try server.listen(on: Endpoint("127.0.0.1", port: 8080))
/// daemon.add(server)
/// ```
///
/// The closure is a task for each request, on the thread of its connection's loop. It begins within the handler that has
/// read the request, without a turn of the loop. A closure that takes an ``HTTPExchange`` sets handlers instead. Connections stay open for further requests, pipelined ones included. The server reads only as fast
/// as the program takes a body, and the program writes only as fast as the client reads. Its ``Limits`` are on by default.
///
/// A client speaks HTTP/2 if TLS has agreed on it, or if it begins with HTTP/2's preface.
///
/// A server belongs to the thread of the loop that it was made on, and is not `Sendable`. That loop keeps it, and runs on,
/// while it listens or has connections.
public final class HTTPServer {
    private let loop: RunLoop
    private let group: LoopGroup?
    private let core: ServerCore
    private let listeners = Locked<[LoopBound<Listener>]>([])
    /// The source that keeps runs of the server's loop going while the server listens.
    private var presence: CustomSource?
    private var isEnding = false

    /// A server on one loop that has a task for each request. Call it on the loop's thread, and then ``HTTPServer/listen(on:options:file:line:)``.
    ///
    /// - Parameters:
    ///   - loop: the loop that accepts and serves.
    ///   - modes: the modes in which it does.
    ///   - limits: the limits for the clients.
    ///   - isolation: the isolation of the caller. If it is the main actor, as in `main.swift`, so is the closure's, and the
    ///     loop of the main thread serves the main actor from then on.
    ///   - serve: answers a request, on the loop's thread. A ``Refusal`` that it throws is the answer; for another error the
    ///     answer is 500. The task is cancelled when the client has gone, or a limit is reached.
    public convenience init(
        on loop: RunLoop, inModes modes: RunLoop.Modes = .common, limits: Limits = Limits(),
        isolation: (any Actor)? = #isolation,
        serve: nonisolated(nonsending) @escaping (Request) async throws -> Response,
        file: StaticString = #fileID, line: UInt32 = #line
    ) {
        // Where code is isolated to the main actor, so is the closure.
        if isolation === MainActor.shared { loop.serveMainActor(forTasksIn: modes) }
        let origin = RunLoop.Origin(file: file, line: line)
        self.init(loop, nil, ServerCore(.tasks(serve), limits, modes, isolation: isolation, origin))
    }

    /// A server on one loop whose exchanges have handlers. Call it on the loop's thread, and then ``HTTPServer/listen(on:options:file:line:)``.
    ///
    /// - Parameters:
    ///   - loop: the loop that accepts and serves.
    ///   - modes: the modes in which it does.
    ///   - limits: the limits for the clients.
    ///   - serve: called with each exchange, on the loop's thread.
    public convenience init(
        on loop: RunLoop, inModes modes: RunLoop.Modes = .common, limits: Limits = Limits(),
        serve: @escaping (HTTPExchange) -> Void, file: StaticString = #fileID, line: UInt32 = #line
    ) {
        self.init(loop, nil, ServerCore(.exchanges(serve), limits, modes, RunLoop.Origin(file: file, line: line)))
    }

    /// A server on the loops of a group, in the common modes, that has a task for each request. It belongs to the calling
    /// thread's loop.
    ///
    /// - Parameters:
    ///   - group: the loops that serve.
    ///   - limits: the limits for the clients, of all loops together.
    ///   - serve: answers a request, on the thread of its connection's loop.
    public convenience init(
        on group: LoopGroup, limits: Limits = Limits(),
        serve: nonisolated(nonsending) @escaping @Sendable (Request) async throws -> Response,
        file: StaticString = #fileID, line: UInt32 = #line
    ) {
        let origin = RunLoop.Origin(file: file, line: line)
        self.init(.current, group, ServerCore(.tasks(serve), limits, .common, origin))
    }

    /// A server on the loops of a group, in the common modes, whose exchanges have handlers. It belongs to the calling
    /// thread's loop.
    ///
    /// - Parameters:
    ///   - group: the loops that serve.
    ///   - limits: the limits for the clients, of all loops together.
    ///   - serve: called with each exchange, on the thread of its connection's loop.
    public convenience init(
        on group: LoopGroup, limits: Limits = Limits(), serve: @escaping @Sendable (HTTPExchange) -> Void,
        file: StaticString = #fileID, line: UInt32 = #line
    ) {
        let origin = RunLoop.Origin(file: file, line: line)
        self.init(.current, group, ServerCore(.exchanges(serve), limits, .common, origin))
    }

    private init(_ loop: RunLoop, _ group: LoopGroup?, _ core: ServerCore) {
        (self.loop, self.group, self.core) = (loop, group, core)
    }

    // MARK: Settings

    /// The limits for connections from now on. On the thread of the server's loop.
    public var limits: Limits {
        get { core.limits }
        set { core.limits = newValue }
    }

    /// The hooks for connections from now on: a log of requests, and metrics. On the thread of the server's loop.
    public var hooks: Hooks {
        get { core.hooks }
        set { core.hooks = newValue }
    }

    /// Has connections from now on speak TLS. Call it before the server listens, and again to renew a certificate: open
    /// connections continue with theirs. On the thread of the server's loop.
    ///
    /// The server offers HTTP/2 and HTTP/1.1 to its clients, and gives them ``Limits/headTime`` for the handshake.
    ///
    /// - Parameters:
    ///   - identity: the certificates and the key.
    ///   - clients: whether clients identify themselves.
    /// - Throws: `TLSError` if OpenSSL cannot use the identity.
    public func setTLS(
        _ identity: TLSIdentity, clients: TLSServerContext.Clients = .anonymous
    ) throws(TLSError) {
        var options = TLSOptions()
        options.applicationProtocols = ["h2", "http/1.1"]
        options.handshakeTimeout = limits.headTime
        core.setTLS(try TLSServerContext(identity: identity, clients: clients, options: options))
    }

    /// The number of open connections, on all loops.
    public var connectionCount: Int { core.census.count }

    // MARK: Listening

    /// Listens on an address, beside those that it listens on already. On the thread of the server's loop. On a group it
    /// blocks that thread until all loops listen.
    ///
    /// - Parameters:
    ///   - address: an address or the path of a Unix socket; with port 0 the system chooses a port.
    ///   - options: the options of the listeners.
    /// - Returns: the address, with the port that the system chose.
    /// - Throws: `SystemError`, for example with `EADDRINUSE`; `RunLoop.WaitError` if a loop of the group has ended.
    @available(*, noasync, message: "it blocks its thread; listen before the loop runs, or in a handler")
    @discardableResult
    public func listen(
        on address: Endpoint, options: Listener.Options = Listener.Options(), file: StaticString = #fileID,
        line: UInt32 = #line
    ) throws -> Endpoint {
        try listen { core, accepted in
            if let group {
                return try group.listen(on: address, options: options, spread: nil, made: made, accepted)
            }
            let listener = try Listener(
                address: address, on: loop, inModes: core.modes, options: options,
                handler: { [unowned loop] in accepted(loop, $1, $2) }, file: file, line: line)
            made(loop, listener)
            return listener.address
        }
    }

    /// Listens on a descriptor that listens already, for example one from a service manager; see `ActivatedSocket`. The
    /// server owns it from now on. On the thread of the server's loop.
    ///
    /// - Parameters:
    ///   - descriptor: the listening descriptor.
    ///   - options: the options of the listener.
    /// - Returns: the address that the descriptor listens on.
    /// - Throws: `SystemError` with `EINVAL` if the descriptor does not listen; `DescriptorError` if it cannot be watched;
    ///   `RunLoop.WaitError` if a loop of the group has ended.
    @available(*, noasync, message: "it blocks its thread; listen before the loop runs, or in a handler")
    @discardableResult
    public func listen(
        inherited descriptor: Int32, options: Listener.Options = Listener.Options(), file: StaticString = #fileID,
        line: UInt32 = #line
    ) throws -> Endpoint {
        try listen { core, accepted in
            if let group { return try group.listen(inherited: descriptor, options: options, made: made, accepted) }
            let listener = try Listener(
                inherited: descriptor, on: loop, inModes: core.modes, options: options,
                handler: { [unowned loop] in accepted(loop, $1, $2) }, file: file, line: line)
            made(loop, listener)
            return listener.address
        }
    }

    private func listen(
        _ body: (ServerCore, @escaping LoopGroup.AcceptHandler) throws -> Endpoint
    ) throws -> Endpoint {
        require(!isEnding, "a server that shuts down listens on no further address")
        let address = try body(core) { [core] loop, descriptor, peer in core.accept(descriptor, from: peer, on: loop) }
        loop[openServers][ObjectIdentifier(self)] = self
        if presence == nil {
            let source = CustomSource()
            source.name = "HTTP server"
            loop.add(source, forMode: core.modes)
            presence = source
        }
        return address
    }

    /// Called with each listener, on the thread of its loop.
    private var made: @Sendable (RunLoop, Listener) -> Void {
        { [listeners] loop, listener in
            let bound = LoopBound(listener, loop: loop)
            listeners.withLock { $0.append(bound) }
        }
    }

    // MARK: The end

    /// Shuts the server down: it accepts the connections that wait, listens no more, and answers the requests that have come.
    ///
    /// A client without a request has a second to send one that is on its way. Clients of HTTP/2 receive `GOAWAY`. Returns at once; repeated calls are harmless. On the thread of the server's loop.
    ///
    /// - Parameters:
    ///   - deadline: the time after which ``close()`` is called; by default, there is no limit.
    ///   - completion: called once, when the last connection has closed, on the same thread, in the server's modes.
    public func shutDown(within deadline: Duration? = nil, completion: @escaping () -> Void = {}) {
        let limit = deadline.map { loop.perform(afterDelay: $0, inModes: core.modes) { [self] in close() } }
        stopAccepting { [self] in
            drain {
                limit?.cancel()
                completion()
            }
        }
    }

    /// Shuts the server down as the form with a completion does, and returns when the last connection has closed. On the
    /// thread of the server's loop.
    ///
    /// - Throws: `CancellationError`, after which the shut-down continues; `RunLoop.WaitError` if the loop has ended.
    public nonisolated(nonsending) func shutDown(within deadline: Duration? = nil) async throws {
        let wait = NamedWait(loop.remote, "waits until an HTTP server has shut down")
        shutDown(within: deadline) { wait.end() }
        try await wait.wait()
    }

    /// Stops listening, and closes all connections at once: output that a client has not received is lost. On the thread of the
    /// server's loop; on other loops of a group it happens in their next pass. Harmless when repeated.
    public func close() {
        isEnding = true
        endListeners({ $0.close() }) {}
        core.channels.closeAll(promise { [self] in forget() })
    }

    /// Accepts the connections that wait, closes the listeners, and calls `completion` then.
    func stopAccepting(_ completion: @escaping () -> Void) {
        isEnding = true
        endListeners({ $0.finish() }) { [self] in
            guard let group else { return completion() }
            // Connections that were accepted in turn were posted before.
            let bound = LoopBound(completion, loop: loop)
            group.performOnEach({ _ in }) { [core] in
                bound.remote.perform(inModes: core.modes) { _ in bound.value() }
            }
        }
    }

    /// Ends each listener on the thread of its loop, and calls `completion` when all have ended.
    private func endListeners(_ end: @escaping @Sendable (Listener) -> Void, _ completion: @escaping () -> Void) {
        let eventLoop = loop.nio(inModes: core.modes)
        let ends = listeners.withLock { listeners in
            defer { listeners = [] }
            return listeners.map { listener in
                let promise = eventLoop.makePromise(of: Void.self)
                let isPosted = listener.remote.perform(inModes: core.modes) { _ in
                    end(listener.value)
                    promise.succeed()
                }
                if !isPosted { promise.succeed() }
                return promise.futureResult
            }
        }
        EventLoopFuture.andAllComplete(ends, on: eventLoop).assumeIsolated().whenComplete { _ in completion() }
    }

    /// Lets the connections finish, and calls `completion` when the last one has closed.
    func drain(_ completion: @escaping () -> Void) {
        core.channels.quiesce(
            promise { [self] in
                forget()
                completion()
            })
    }

    private func promise(_ completion: @escaping () -> Void) -> EventLoopPromise<Void> {
        let promise = loop.nio(inModes: core.modes).makePromise(of: Void.self)
        promise.futureResult.assumeIsolated().whenComplete { _ in completion() }
        return promise
    }

    /// Lets the loop end without this server, which neither listens nor has connections.
    private func forget() {
        loop[openServers][ObjectIdentifier(self)] = nil
        presence?.invalidate()
        presence = nil
    }
}

@available(*, unavailable, message: "a server belongs to the thread of its loop")
extension HTTPServer: Sendable {}

/// The servers of a loop that listen or have connections.
private let openServers = RunLoop.Local<[ObjectIdentifier: HTTPServer]> { _ in [:] }

extension Daemon {
    /// Ends a server with the daemon, in stages: it stops accepting, its connections finish in the stage of the drain, and
    /// the rest are closed first in the last stage. See ``HTTPServer/shutDown(within:completion:)``; the deadline is the
    /// daemon's `drainLimit`.
    ///
    /// The daemon keeps the server. Call it on the loop's thread, which is that of the server, too.
    ///
    /// - Parameters:
    ///   - server: the server.
    ///   - name: the name of its hooks in `abandoned`.
    public func add(_ server: HTTPServer, name: String = "HTTP server") {
        onStop(.stopAccepting, name: name) { done in server.stopAccepting { done() } }
        onStop(.drain, name: name) { done in server.drain { done() } }
        onStop(.exit, order: .min, name: name) { server.close() }
    }
}
#else
@available(
    *, unavailable, message: "RunLoopHTTP needs the trait Adapters: .package(…, traits: [\"Adapters\"])"
)
public enum HTTPServer {}
#endif
