#if Adapters
public import HTTPTypes
@_spi(Ports) public import RunLoopKit
@_spi(Ports) internal import RunLoopTLS

/// A client for HTTP/1.1 and HTTP/2 on a run loop, with a pool of connections for each origin.
///
/// ```swift
/// let client = HTTPClient(on: loop)
/// let answer = try await client.get("https://example.com/orders")
/// let orders = try JSONDecoder().decode([Order].self, from: Data(buffer: try await answer.body.collect(upTo: 1_000_000)))
/// ```
///
/// An address with `https` is connected with TLS, and speaks HTTP/2 if the server does. Names are looked up as by
/// `Connection.connect(host:port:on:)`. Each step has a time limit on the loop's clock, so a test on virtual time waits for
/// nothing; see ``Options``.
///
/// A request on a connection that the server had closed meanwhile is sent again, on another connection, if it may be repeated:
/// its method is one of GET, HEAD, PUT, DELETE, OPTIONS and TRACE, its body is in memory, and no part of an answer has come. A
/// request of any method is sent again if a server of HTTP/2 has refused to begin with it. Nothing else is repeated. The client
/// follows no redirects, and has no cookies, proxies or caches.
///
/// A client belongs to the loop's thread, and is not `Sendable`. When it is released, its unused connections are closed, and the
/// others when their answers have been taken; a ``WebSocket`` stays.
public final class HTTPClient {
    private let loop: RunLoop
    private let modes: RunLoop.Modes
    private let options: Options
    private var pools: [Origin: Pool] = [:]
    /// The WebSockets, also those that are being opened.
    private var sockets: [ObjectIdentifier: WebSocketDial] = [:]
    private var isClosed = false
    private var tls: TLSClientContext?

    /// Creates a client. On the loop's thread.
    ///
    /// - Parameters:
    ///   - loop: the loop of the connections.
    ///   - modes: the modes in which they are served.
    ///   - options: the limits and times, and the settings of TLS.
    public init(on loop: RunLoop, inModes modes: RunLoop.Modes = .common, options: Options = Options()) {
        (self.loop, self.modes, self.options, tls) = (loop, modes, options, options.tls)
    }

    deinit {
        for pool in pools.values { pool.retire() }
    }

    /// The number of open connections. On the loop's thread.
    public var connectionCount: Int {
        pools.values.reduce(sockets.values.count { $0.isOpen }) { $0 + $1.connectionCount }
    }

    /// Sends a request, and returns when the head of the answer has come. On the loop's thread.
    ///
    /// A cancelled task closes the connection of its request.
    ///
    /// - Parameters:
    ///   - request: the method, the scheme, the authority, the path and the fields. The client adds `Host` and the fields
    ///     that frame the body.
    ///   - body: the body.
    /// - Throws: ``Failure``; `CancellationError`; `RunLoop.WaitError` if the loop has ended. A status such as 404 is no
    ///   error.
    public nonisolated(nonsending) func send(
        _ request: HTTPRequest, body: RequestBody = .none, file: StaticString = #fileID, line: UInt32 = #line
    ) async throws -> Response {
        guard let origin = Origin(request) else { throw Failure.address(request.authority ?? "") }
        let pool = try pool(of: origin)
        do {
            let time = options.answerTime
            return try await loop.withTimeout(time, { try await answer(request, body, pool) }, file: file, line: line)
        } catch is RunLoop.TimeoutError {
            throw Failure.answerTime
        }
    }

    private nonisolated(nonsending) func answer(
        _ request: HTTPRequest, _ body: RequestBody, _ pool: Pool
    ) async throws -> Response {
        // Each of the connections may have been closed meanwhile. More would not help with a server that refuses.
        var repeats = options.connectionsPerOrigin
        while true {
            let place = try await pool.place()
            let exchange = ClientExchange(request, on: loop, options)
            do {
                exchange.begin(on: place.handler, body)
                return try await exchange.response()
            } catch Failure.closed where repeats > 0 && mayRepeat(exchange, place, body) {
                repeats -= 1
            } catch {
                exchange.fail(error as? Failure ?? .answerTime)
                throw error
            }
        }
    }

    /// Sends a GET request; see ``send(_:body:file:line:)``. On the loop's thread.
    ///
    /// - Parameters:
    ///   - address: an address such as `http://host:8080/path?query`, encoded with percent signs where needed.
    ///   - headerFields: the fields of the request.
    public nonisolated(nonsending) func get(
        _ address: String, headerFields: HTTPFields = [:], file: StaticString = #fileID, line: UInt32 = #line
    ) async throws -> Response {
        try await send(HTTPRequest(.get, address, headerFields: headerFields), file: file, line: line)
    }

    /// Opens a ``WebSocket``, on a connection of its own, and returns when the server has agreed. On the loop's thread.
    ///
    /// ```swift
    /// let socket = try await client.webSocket("wss://example.com/prices")
    /// try await socket.send("subscribe")
    /// for try await message in socket { print(message) }
    /// ```
    ///
    /// The connection stays, whether the program keeps the socket or not, until one side closes it; see
    /// ``WebSocket/close(_:)``. Its times and limits are in ``Options``.
    ///
    /// - Parameters:
    ///   - address: an address such as `ws://host:8080/path?query`, encoded with percent signs where needed.
    ///   - subprotocols: the protocols within WebSocket that the program speaks, the preferred one first. The server's choice
    ///     is ``WebSocket/subprotocol``.
    ///   - headerFields: further fields of the request, such as `Authorization`.
    /// - Throws: ``Failure``, for example ``Failure/notUpgraded(_:)`` with the server's answer if it refuses;
    ///   `CancellationError`; `RunLoop.WaitError` if the loop has ended.
    public nonisolated(nonsending) func webSocket(
        _ address: String, subprotocols: [String] = [], headerFields: HTTPFields = [:], file: StaticString = #fileID,
        line: UInt32 = #line
    ) async throws -> WebSocket {
        let scheme = address.prefix { $0 != ":" }.lowercased()
        guard scheme == "ws" || scheme == "wss",
            let request = try? HTTPRequest(.get, "http" + address.dropFirst(2), headerFields: headerFields),
            let origin = Origin(request)
        else { throw Failure.address(address) }
        if isClosed { throw Failure.clientClosed }
        let tls = try origin.isSecure ? tlsContext().offering(["http/1.1"]) : nil
        let dial = WebSocketDial(request, subprotocols, on: loop, inModes: modes, options)
        let name = ObjectIdentifier(dial)
        sockets[name] = dial
        dial.ended = { [weak self] in self?.sockets[name] = nil }
        do {
            let time = options.answerTime
            return try await loop.withTimeout(time, { try await dial.open(origin, tls) }, file: file, line: line)
        } catch is RunLoop.TimeoutError {
            throw Failure.answerTime
        }
    }

    private func mayRepeat(_ exchange: ClientExchange, _ place: Pool.Place, _ body: RequestBody) -> Bool {
        guard case .bytes = body.content, !exchange.hasBegun else { return false }
        let isHarmless = [.get, .head, .put, .delete, .options, .trace].contains(exchange.request.method)
        return exchange.isRefused || place.isUsed && isHarmless
    }

    private func pool(of origin: Origin) throws -> Pool {
        if isClosed { throw Failure.clientClosed }
        if let pool = pools[origin] { return pool }
        let pool = Pool(origin, on: loop, inModes: modes, options, tls: try origin.isSecure ? tlsContext() : nil)
        pools[origin] = pool
        return pool
    }

    private func tlsContext() throws -> TLSClientContext {
        do {
            let given = try tls ?? TLSClientContext()
            let made = given.offersProtocols ? given : try given.offering(["h2", "http/1.1"])
            tls = made
            return made
        } catch { throw Failure.unreachable(error) }
    }

    /// Closes all connections; requests that are under way fail, and servers of WebSockets get the status 1001. On the loop's
    /// thread. Harmless when repeated.
    public func close() {
        isClosed = true
        for dial in sockets.values { dial.close() }
        for pool in pools.values { pool.close() }
    }
}

@available(*, unavailable, message: "a client belongs to the thread of its loop")
extension HTTPClient: Sendable {}
#else
@available(
    *, unavailable, message: "RunLoopHTTP needs the trait Adapters: .package(…, traits: [\"Adapters\"])"
)
public enum HTTPClient {}
#endif
