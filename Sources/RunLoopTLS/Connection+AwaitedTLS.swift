@_spi(Ports) public import RunLoopKit
@_spi(Ports) public import RunLoopUnix

extension Connection {
    /// Connects to an address, and returns a TLS connection for tasks, which is not started: its handshake begins with
    /// the first read or write, or with `withStream`. Otherwise behaves as the variant with a completion handler. Await
    /// it on the loop's thread.
    ///
    /// - Throws: ``TLSError`` of the kind `configuration` if `serverName` cannot be the name of a server;
    ///   `SystemError`; `CancellationError` if the task is cancelled, which closes the socket; `RunLoop.WaitError` if
    ///   the loop has ended.
    public nonisolated(nonsending) static func connect(
        to address: Endpoint, on loop: RunLoop, inModes modes: RunLoop.Modes = .common, limits: Limits = Limits(),
        timeout: Duration = .seconds(30), tls client: TLSClientContext, serverName: String,
        file: StaticString = #fileID, line: UInt32 = #line
    ) async throws -> Connection {
        // Thrown before anything is connected.
        let session = try TLSSession(client, serverName: serverName)
        let origin = RunLoop.Origin(file: file, line: line)
        return try await loop.awaitCompletion { (completion: @escaping (Result<Connection, SystemError>) -> Void) in
            let attempt = connect(
                to: address, on: loop, inModes: modes, timeout: timeout, origin: origin, completion: completion
            ) {
                let stream = TLSStream(session, over: $0)
                return Connection(stream, on: loop, inModes: modes, limits: limits, origin: origin, receive: nil)
            }
            // The loop keeps the attempt: the end of the loop releases the completion, which resumes the task.
            return { [weak attempt] in attempt?.cancel() }
        }.get()
    }

    /// Looks up a host, connects to it, and returns a TLS connection for tasks, which is not started: its handshake
    /// begins with the first read or write, or with `withStream`. Otherwise behaves as the variant with a completion
    /// handler. Await it on the loop's thread.
    ///
    /// - Throws: ``TLSError`` of the kind `configuration` if `serverName` cannot be the name of a server;
    ///   `ConnectError`; `CancellationError` if the task is cancelled, which leaves nothing open; `RunLoop.WaitError`
    ///   if the loop has ended.
    public nonisolated(nonsending) static func connect(
        host: String, port: UInt16, on loop: RunLoop, inModes modes: RunLoop.Modes = .common, limits: Limits = Limits(),
        timeout: Duration = .seconds(30), retry: Retry? = nil, tls client: TLSClientContext, serverName: String? = nil,
        file: StaticString = #fileID, line: UInt32 = #line
    ) async throws -> Connection {
        // Thrown before anything is looked up.
        let session = try TLSSession(client, serverName: serverName ?? host)
        let origin = RunLoop.Origin(file: file, line: line)
        return try await loop.awaitCompletion { (completion: @escaping (Result<Connection, ConnectError>) -> Void) in
            let attempt = connect(
                host: host, port: port, on: loop, inModes: modes, timeout: timeout, retry: retry, origin: origin,
                completion: completion
            ) {
                let stream = TLSStream(session, over: $0)
                return Connection(stream, on: loop, inModes: modes, limits: limits, origin: origin, receive: nil)
            }
            // The loop keeps the attempt: the end of the loop releases the completion, which resumes the task.
            return { [weak attempt] in attempt?.cancel() }
        }.get()
    }
}

extension Listener {
    /// Waits for the next connection of a listener without a handler, and returns it as a TLS connection. The handshake
    /// begins with the connection's first use. Otherwise behaves as the variant without TLS. Await it on the loop's
    /// thread.
    ///
    /// - Throws: the errors of the variant without TLS, and ``TLSError`` of the kind `configuration` if OpenSSL cannot
    ///   make a session.
    public nonisolated(nonsending) func accept(
        limits: Connection.Limits = .init(), tls server: TLSServerContext, file: StaticString = #fileID,
        line: UInt32 = #line
    ) async throws -> Connection? {
        guard let socket = try await acceptSocket() else { return nil }
        return try Connection(
            adopting: socket.descriptor, on: loop, inModes: modes, limits: limits, tls: server, file: file, line: line)
    }
}
