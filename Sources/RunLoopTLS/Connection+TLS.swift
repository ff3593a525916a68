public import RunLoopKit
public import RunLoopUnix

extension Connection {
    /// A connection of a server that speaks TLS, on a descriptor that it makes non-blocking and from now on owns.
    ///
    /// It is what it would be without TLS: the same modes, limits, handlers and ends. The handshake begins with
    /// ``RunLoopUnix/Connection/start()``; what is written before it is done goes out then. When it fails the
    /// connection closes with the reason ``RunLoopUnix/Connection/CloseReason/tls(_:)``.
    ///
    /// - Parameters:
    ///   - descriptor: a connected stream socket.
    ///   - loop: the loop that serves it.
    ///   - modes: the modes that it is served in.
    ///   - limits: its bounds.
    ///   - server: how TLS is spoken.
    ///   - receive: called with what has come; returns how many bytes it has used. Kept until the connection is closed.
    public convenience init(
        adopting descriptor: Int32, on loop: RunLoop, modes: RunLoop.Modes = .common, limits: Limits = Limits(),
        tls server: TLSServerContext, receive: @escaping ReceiveHandler, file: StaticString = #fileID,
        line: UInt32 = #line
    ) {
        self.init(
            adopting: descriptor, on: loop, modes: modes, limits: limits, transport: TLSSession(server, descriptor),
            receive: receive, origin: RunLoop.Origin(file: file, line: line))
    }

    /// A connection of a client that speaks TLS, on a descriptor that is connected already.
    ///
    /// - Parameters:
    ///   - descriptor: a connected stream socket.
    ///   - loop: the loop that serves it.
    ///   - modes: the modes that it is served in.
    ///   - limits: its bounds.
    ///   - client: how TLS is spoken.
    ///   - serverName: whom the server's certificate has to be for: a name, or an address in digits. A name is told to
    ///     the server.
    ///   - receive: called with what has come; returns how many bytes it has used. Kept until the connection is closed.
    public convenience init(
        adopting descriptor: Int32, on loop: RunLoop, modes: RunLoop.Modes = .common, limits: Limits = Limits(),
        tls client: TLSClientContext, serverName: String, receive: @escaping ReceiveHandler,
        file: StaticString = #fileID, line: UInt32 = #line
    ) {
        self.init(
            adopting: descriptor, on: loop, modes: modes, limits: limits,
            transport: TLSSession(client, descriptor, serverName: serverName), receive: receive,
            origin: RunLoop.Origin(file: file, line: line))
    }

    /// Connects to an address without blocking, to speak TLS with whom is there.
    ///
    /// - Parameters:
    ///   - address: where to.
    ///   - loop: the loop that serves the connection.
    ///   - modes: the modes that it is served in.
    ///   - limits: its bounds.
    ///   - timeout: how long connecting may take, without the handshake; then it fails with `ETIMEDOUT`.
    ///   - client: how TLS is spoken.
    ///   - serverName: whom the server's certificate has to be for: a name, or an address in digits.
    ///   - receive: the connection's receive handler.
    ///   - completion: called once, on the loop's thread, never before this call has returned: with the connection,
    ///     which is to be started and then shakes hands, or with the reason why there is none.
    /// - Returns: the attempt, to be kept only to cancel it.
    @discardableResult
    public static func connect(
        to address: Endpoint, on loop: RunLoop, modes: RunLoop.Modes = .common, limits: Limits = Limits(),
        timeout: Duration = .seconds(30), tls client: TLSClientContext, serverName: String,
        receive: @escaping ReceiveHandler, completion: @escaping (Result<Connection, SystemError>) -> Void,
        file: StaticString = #fileID, line: UInt32 = #line
    ) -> ConnectionAttempt {
        let origin = RunLoop.Origin(file: file, line: line)
        return connect(to: address, on: loop, modes: modes, timeout: timeout, origin: origin, completion: completion) {
            Connection(
                adopting: $0, on: loop, modes: modes, limits: limits, tls: client, serverName: serverName,
                receive: receive, file: file, line: line)
        }
    }

    /// The TLS of the connection; `nil` if it speaks none. O(1).
    public var tls: TLSSession? { transport as? TLSSession }
}
