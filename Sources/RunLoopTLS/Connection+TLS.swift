public import RunLoopKit
@_spi(Ports) public import RunLoopUnix

extension Connection {
    /// Creates a server's TLS connection on a descriptor, which it makes non-blocking and then owns.
    ///
    /// Modes, limits, handlers and closing work as without TLS. ``/RunLoopUnix/Connection/start()`` begins the
    /// handshake. Bytes that you write before it completes are sent afterwards. If the handshake fails, the connection
    /// closes with a ``TLSError`` as the reason.
    ///
    /// - Parameters:
    ///   - descriptor: a connected stream socket.
    ///   - loop: the loop that serves it.
    ///   - modes: the modes in which it is served.
    ///   - limits: its limits.
    ///   - server: the TLS context.
    ///   - receive: called with the received bytes; returns how many bytes it has used. Kept until the connection is
    ///     closed.
    /// - Throws: ``TLSError`` of the kind `configuration` if OpenSSL cannot make a session; the descriptor is closed
    ///   then.
    public convenience init(
        adopting descriptor: Int32, on loop: RunLoop, inModes modes: RunLoop.Modes = .common, limits: Limits = Limits(),
        tls server: TLSServerContext, receive: ReceiveHandler? = nil, file: StaticString = #fileID,
        line: UInt32 = #line
    ) throws(TLSError) {
        let below = loop.makeStream(reading: descriptor, writing: descriptor)
        self.init(
            TLSStream(try TLSSession(server), over: below), on: loop, inModes: modes, limits: limits,
            origin: RunLoop.Origin(file: file, line: line), receive: receive)
    }

    /// Creates a client's TLS connection on a connected descriptor, which it makes non-blocking and then owns.
    ///
    /// - Parameters:
    ///   - descriptor: a connected stream socket.
    ///   - loop: the loop that serves it.
    ///   - modes: the modes in which it is served.
    ///   - limits: its limits.
    ///   - client: the TLS context.
    ///   - serverName: the name or the address in digits that the server's certificate must be for. A name is also sent
    ///     to the server.
    ///   - receive: called with the received bytes; returns how many bytes it has used. Kept until the connection is
    ///     closed.
    /// - Throws: ``TLSError`` of the kind `configuration` if `serverName` cannot be the name of a server; the
    ///   descriptor is closed then.
    public convenience init(
        adopting descriptor: Int32, on loop: RunLoop, inModes modes: RunLoop.Modes = .common, limits: Limits = Limits(),
        tls client: TLSClientContext, serverName: String, receive: ReceiveHandler? = nil,
        file: StaticString = #fileID, line: UInt32 = #line
    ) throws(TLSError) {
        let below = loop.makeStream(reading: descriptor, writing: descriptor)
        self.init(
            TLSStream(try TLSSession(client, serverName: serverName), over: below), on: loop, inModes: modes,
            limits: limits, origin: RunLoop.Origin(file: file, line: line), receive: receive)
    }

    /// Connects to an address without blocking, and calls `completion` with a TLS connection.
    ///
    /// - Parameters:
    ///   - address: where to connect.
    ///   - loop: the loop that serves the connection.
    ///   - modes: the modes in which it is served.
    ///   - limits: its limits.
    ///   - timeout: how long connecting may take, without the handshake, before it fails with `ETIMEDOUT`; by default
    ///     30 s.
    ///   - client: the TLS context.
    ///   - serverName: the name or the address in digits that the server's certificate must be for.
    ///   - receive: the connection's receive handler.
    ///   - completion: called once, on the loop's thread, and never before this call has returned: with a connection,
    ///     which begins its handshake when you start it, or with the error.
    /// - Returns: the attempt. Keep it only if you may want to cancel it.
    /// - Throws: ``TLSError`` of the kind `configuration`, at once, if `serverName` cannot be the name of a server.
    @discardableResult
    public static func connect(
        to address: Endpoint, on loop: RunLoop, inModes modes: RunLoop.Modes = .common, limits: Limits = Limits(),
        timeout: Duration = .seconds(30), tls client: TLSClientContext, serverName: String,
        receive: ReceiveHandler? = nil, completion: @escaping (Result<Connection, SystemError>) -> Void,
        file: StaticString = #fileID, line: UInt32 = #line
    ) throws(TLSError) -> ConnectionAttempt {
        let session = try TLSSession(client, serverName: serverName)
        let origin = RunLoop.Origin(file: file, line: line)
        return connect(to: address, on: loop, inModes: modes, timeout: timeout, origin: origin, completion: completion)
        {
            Connection(
                TLSStream(session, over: $0), on: loop, inModes: modes, limits: limits, origin: origin, receive: receive
            )
        }
    }

    /// Looks up a host, connects to it without blocking, and calls `completion` with a TLS connection. The addresses
    /// are tried as without TLS; the handshake comes later.
    ///
    /// - Parameters:
    ///   - host: a name, or an address in digits.
    ///   - port: the port.
    ///   - loop: the loop that serves the connection.
    ///   - modes: the modes in which it is served.
    ///   - limits: its limits.
    ///   - timeout: how long a try may take, with the look-up and all addresses but without the handshake; by default
    ///     30 s.
    ///   - retry: whether and when to try again after a failure; `nil`, the default, means a single try. A handshake
    ///     that fails is not tried again.
    ///   - client: the TLS context.
    ///   - serverName: the name or the address in digits that the server's certificate must be for; by default `host`.
    ///   - receive: the connection's receive handler.
    ///   - completion: called once, on the loop's thread, and never before this call has returned: with a connection,
    ///     which begins its handshake when you start it, or with the error of the last try. If the loop ends first, it
    ///     is released without a call.
    /// - Returns: the attempt. Keep it only if you may want to cancel it.
    /// - Throws: ``TLSError`` of the kind `configuration`, at once, if `serverName` cannot be the name of a server.
    /// - Precondition: the values of `retry` are within the bounds that its properties state.
    @discardableResult
    public static func connect(
        host: String, port: UInt16, on loop: RunLoop, inModes modes: RunLoop.Modes = .common, limits: Limits = Limits(),
        timeout: Duration = .seconds(30), retry: Retry? = nil, tls client: TLSClientContext,
        serverName: String? = nil, receive: ReceiveHandler? = nil,
        completion: @escaping (Result<Connection, ConnectError>) -> Void, file: StaticString = #fileID,
        line: UInt32 = #line
    ) throws(TLSError) -> ConnectionAttempt {
        let session = try TLSSession(client, serverName: serverName ?? host)
        let origin = RunLoop.Origin(file: file, line: line)
        return connect(
            host: host, port: port, on: loop, inModes: modes, timeout: timeout, retry: retry, origin: origin,
            completion: completion
        ) {
            Connection(
                TLSStream(session, over: $0), on: loop, inModes: modes, limits: limits, origin: origin, receive: receive
            )
        }
    }

    /// The TLS session of the connection; `nil` if it does not speak TLS, or has moved to another loop. O(1).
    public var tls: TLSSession? { hasMoved ? nil : stream.tls }
}
