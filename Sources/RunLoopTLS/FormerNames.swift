public import RunLoopKit
public import RunLoopUnix

// Names of version 0.4.0, which the next version no longer has.

extension Connection {
    /// The former spelling: the label is `inModes:` now.
    @available(*, deprecated, renamed: "connect(host:port:on:inModes:limits:timeout:retry:tls:serverName:file:line:)")
    public nonisolated(nonsending) static func connect(
        host: String, port: UInt16, on loop: RunLoop, modes: RunLoop.Modes, limits: Connection.Limits = Limits(),
        timeout: Duration = .seconds(30), retry: Connection.Retry? = nil, tls client: TLSClientContext,
        serverName: String? = nil, file: StaticString = #fileID, line: UInt32 = #line
    ) async throws -> Connection {
        try await Self.connect(
            host: host, port: port, on: loop, inModes: modes, limits: limits, timeout: timeout, retry: retry,
            tls: client, serverName: serverName, file: file, line: line)
    }

    /// The former spelling: the label is `inModes:` now.
    @available(
        *, deprecated,
        renamed: "connect(host:port:on:inModes:limits:timeout:retry:tls:serverName:receive:completion:file:line:)"
    )
    @discardableResult
    public static func connect(
        host: String, port: UInt16, on loop: RunLoop, modes: RunLoop.Modes, limits: Connection.Limits = Limits(),
        timeout: Duration = .seconds(30), retry: Connection.Retry? = nil, tls client: TLSClientContext,
        serverName: String? = nil, receive: Connection.ReceiveHandler? = nil,
        completion: @escaping (Result<Connection, Connection.ConnectError>) -> Void, file: StaticString = #fileID,
        line: UInt32 = #line
    ) throws(TLSError) -> ConnectionAttempt {
        try Self.connect(
            host: host, port: port, on: loop, inModes: modes, limits: limits, timeout: timeout, retry: retry,
            tls: client, serverName: serverName, receive: receive, completion: completion, file: file, line: line)
    }

    /// The former spelling: the label is `inModes:` now.
    @available(*, deprecated, renamed: "connect(to:on:inModes:limits:timeout:tls:serverName:file:line:)")
    public nonisolated(nonsending) static func connect(
        to address: Endpoint, on loop: RunLoop, modes: RunLoop.Modes, limits: Connection.Limits = Limits(),
        timeout: Duration = .seconds(30), tls client: TLSClientContext, serverName: String,
        file: StaticString = #fileID, line: UInt32 = #line
    ) async throws -> Connection {
        try await Self.connect(
            to: address, on: loop, inModes: modes, limits: limits, timeout: timeout, tls: client,
            serverName: serverName, file: file, line: line)
    }

    /// The former spelling: the label is `inModes:` now.
    @available(
        *, deprecated, renamed: "connect(to:on:inModes:limits:timeout:tls:serverName:receive:completion:file:line:)"
    )
    @discardableResult
    public static func connect(
        to address: Endpoint, on loop: RunLoop, modes: RunLoop.Modes, limits: Connection.Limits = Limits(),
        timeout: Duration = .seconds(30), tls client: TLSClientContext, serverName: String,
        receive: Connection.ReceiveHandler? = nil, completion: @escaping (Result<Connection, SystemError>) -> Void,
        file: StaticString = #fileID, line: UInt32 = #line
    ) throws(TLSError) -> ConnectionAttempt {
        try Self.connect(
            to: address, on: loop, inModes: modes, limits: limits, timeout: timeout, tls: client,
            serverName: serverName, receive: receive, completion: completion, file: file, line: line)
    }

    /// The former spelling: the label is `inModes:` now.
    @available(*, deprecated, renamed: "init(adopting:on:inModes:limits:tls:receive:file:line:)")
    public convenience init(
        adopting descriptor: Int32, on loop: RunLoop, modes: RunLoop.Modes, limits: Connection.Limits = Limits(),
        tls server: TLSServerContext, receive: Connection.ReceiveHandler? = nil, file: StaticString = #fileID,
        line: UInt32 = #line
    ) throws(TLSError) {
        try self.init(
            adopting: descriptor, on: loop, inModes: modes, limits: limits, tls: server, receive: receive, file: file,
            line: line)
    }

    /// The former spelling: the label is `inModes:` now.
    @available(*, deprecated, renamed: "init(adopting:on:inModes:limits:tls:serverName:receive:file:line:)")
    public convenience init(
        adopting descriptor: Int32, on loop: RunLoop, modes: RunLoop.Modes, limits: Connection.Limits = Limits(),
        tls client: TLSClientContext, serverName: String, receive: Connection.ReceiveHandler? = nil,
        file: StaticString = #fileID, line: UInt32 = #line
    ) throws(TLSError) {
        try self.init(
            adopting: descriptor, on: loop, inModes: modes, limits: limits, tls: client, serverName: serverName,
            receive: receive, file: file, line: line)
    }
}
