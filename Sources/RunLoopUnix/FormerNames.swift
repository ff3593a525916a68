public import RunLoopKit

// Names of version 0.4.0, which the next version no longer has.

extension ChildProcess {
    /// The former spelling: the label is `inModes:` now.
    @available(*, deprecated, renamed: "stop(within:asking:on:inModes:file:line:)")
    public func stop(
        within grace: Duration, asking signal: Signal = .terminate, on loop: RunLoop, modes: RunLoop.Modes,
        file: StaticString = #fileID, line: UInt32 = #line
    ) throws(SystemError) {
        try stop(within: grace, asking: signal, on: loop, inModes: modes, file: file, line: line)
    }
}

extension Connection {
    /// The former spelling: the label is `inModes:` now.
    @available(*, deprecated, renamed: "connect(host:port:on:inModes:limits:timeout:retry:file:line:)")
    public nonisolated(nonsending) static func connect(
        host: String, port: UInt16, on loop: RunLoop, modes: RunLoop.Modes, limits: Connection.Limits = Limits(),
        timeout: Duration = .seconds(30), retry: Connection.Retry? = nil, file: StaticString = #fileID,
        line: UInt32 = #line
    ) async throws -> Connection {
        try await Self.connect(
            host: host, port: port, on: loop, inModes: modes, limits: limits, timeout: timeout, retry: retry,
            file: file, line: line)
    }

    /// The former spelling: the label is `inModes:` now.
    @available(
        *, deprecated, renamed: "connect(host:port:on:inModes:limits:timeout:retry:receive:completion:file:line:)"
    )
    @discardableResult
    public static func connect(
        host: String, port: UInt16, on loop: RunLoop, modes: RunLoop.Modes, limits: Connection.Limits = Limits(),
        timeout: Duration = .seconds(30), retry: Connection.Retry? = nil, receive: Connection.ReceiveHandler? = nil,
        completion: @escaping (Result<Connection, Connection.ConnectError>) -> Void, file: StaticString = #fileID,
        line: UInt32 = #line
    ) -> ConnectionAttempt {
        Self.connect(
            host: host, port: port, on: loop, inModes: modes, limits: limits, timeout: timeout, retry: retry,
            receive: receive, completion: completion, file: file, line: line)
    }

    /// The former spelling: the label is `inModes:` now.
    @available(*, deprecated, renamed: "connect(to:on:inModes:limits:timeout:file:line:)")
    public nonisolated(nonsending) static func connect(
        to address: Endpoint, on loop: RunLoop, modes: RunLoop.Modes, limits: Connection.Limits = Limits(),
        timeout: Duration = .seconds(30), file: StaticString = #fileID, line: UInt32 = #line
    ) async throws -> Connection {
        try await Self.connect(
            to: address, on: loop, inModes: modes, limits: limits, timeout: timeout, file: file, line: line)
    }

    /// The former spelling: the label is `inModes:` now.
    @available(*, deprecated, renamed: "connect(to:on:inModes:limits:timeout:receive:completion:file:line:)")
    @discardableResult
    public static func connect(
        to address: Endpoint, on loop: RunLoop, modes: RunLoop.Modes, limits: Connection.Limits = Limits(),
        timeout: Duration = .seconds(30), receive: Connection.ReceiveHandler? = nil,
        completion: @escaping (Result<Connection, SystemError>) -> Void, file: StaticString = #fileID,
        line: UInt32 = #line
    ) -> ConnectionAttempt {
        Self.connect(
            to: address, on: loop, inModes: modes, limits: limits, timeout: timeout, receive: receive,
            completion: completion, file: file, line: line)
    }

    /// The former spelling: the label is `inModes:` now.
    @available(*, deprecated, renamed: "init(adopting:on:inModes:limits:receive:file:line:)")
    public convenience init(
        adopting descriptor: Int32, on loop: RunLoop, modes: RunLoop.Modes, limits: Connection.Limits = Limits(),
        receive: Connection.ReceiveHandler? = nil, file: StaticString = #fileID, line: UInt32 = #line
    ) {
        self.init(
            adopting: descriptor, on: loop, inModes: modes, limits: limits, receive: receive, file: file, line: line)
    }

    /// The former spelling: the label is `inModes:` now.
    @available(*, deprecated, renamed: "init(adopting:on:inModes:limits:receive:file:line:)")
    public convenience init(
        adopting moved: consuming Connection.Moved, on loop: RunLoop, modes: RunLoop.Modes,
        limits: Connection.Limits? = nil, receive: Connection.ReceiveHandler? = nil, file: StaticString = #fileID,
        line: UInt32 = #line
    ) {
        self.init(adopting: moved, on: loop, inModes: modes, limits: limits, receive: receive, file: file, line: line)
    }

    /// The former spelling: the label is `inModes:` now.
    @available(*, deprecated, renamed: "init(adoptingInput:output:on:inModes:limits:receive:file:line:)")
    public convenience init(
        adoptingInput input: Int32?, output: Int32?, on loop: RunLoop, modes: RunLoop.Modes,
        limits: Connection.Limits = Limits(), receive: Connection.ReceiveHandler? = nil, file: StaticString = #fileID,
        line: UInt32 = #line
    ) {
        self.init(
            adoptingInput: input, output: output, on: loop, inModes: modes, limits: limits, receive: receive,
            file: file, line: line)
    }

    /// The former spelling: the label is `inModes:` now.
    @available(*, deprecated, renamed: "init(reading:writing:on:inModes:limits:receive:file:line:)")
    public convenience init(
        reading input: PipeEnd?, writing output: PipeEnd?, on loop: RunLoop, modes: RunLoop.Modes,
        limits: Connection.Limits = Limits(), receive: Connection.ReceiveHandler? = nil, file: StaticString = #fileID,
        line: UInt32 = #line
    ) {
        self.init(
            reading: input, writing: output, on: loop, inModes: modes, limits: limits, receive: receive, file: file,
            line: line)
    }
}

extension HostResolver {
    /// The former name of ``LookupError``.
    @available(*, deprecated, renamed: "LookupError")
    public typealias Failure = LookupError

    /// The former spelling: the label is `inModes:` now.
    @available(*, deprecated, renamed: "resolve(_:port:on:inModes:timeout:completion:file:line:)")
    @discardableResult
    public static func resolve(
        _ name: String, port: UInt16, on loop: RunLoop, modes: RunLoop.Modes, timeout: Duration = .seconds(30),
        completion: @escaping (Result<[Endpoint], HostResolver.LookupError>) -> Void, file: StaticString = #fileID,
        line: UInt32 = #line
    ) -> HostLookup {
        Self.resolve(
            name, port: port, on: loop, inModes: modes, timeout: timeout, completion: completion, file: file, line: line
        )
    }

    /// The former spelling: the label is `inModes:` now.
    @available(*, deprecated, renamed: "resolve(_:port:on:inModes:timeout:file:line:)")
    public nonisolated(nonsending) static func resolve(
        _ name: String, port: UInt16, on loop: RunLoop, modes: RunLoop.Modes, timeout: Duration = .seconds(30),
        file: StaticString = #fileID, line: UInt32 = #line
    ) async throws -> [Endpoint] {
        try await Self.resolve(name, port: port, on: loop, inModes: modes, timeout: timeout, file: file, line: line)
    }
}

extension File.Access {
    /// The former name of ``readingAndWritingNew``.
    @available(*, deprecated, renamed: "readingAndWritingNew")
    public static var creating: File.Access { .readingAndWritingNew }

    /// The former name of ``readingAndWritingLocked``.
    @available(*, deprecated, renamed: "readingAndWritingLocked")
    public static var locking: File.Access { .readingAndWritingLocked }
}

extension Listener {
    /// The former name of ``acceptedCount``.
    @available(*, deprecated, renamed: "acceptedCount")
    public var accepted: Int { acceptedCount }

    /// The former name of ``refusedCount``.
    @available(*, deprecated, renamed: "refusedCount")
    public var refused: Int { refusedCount }

    /// The former name of ``turnedAwayCount``.
    @available(*, deprecated, renamed: "turnedAwayCount")
    public var turnedAway: Int { turnedAwayCount }

    /// The former name of ``pauseCount``.
    @available(*, deprecated, renamed: "pauseCount")
    public var waits: Int { pauseCount }

    /// The former spelling: the label is `inModes:` now.
    @available(*, deprecated, renamed: "init(address:on:inModes:options:handler:file:line:)")
    public convenience init(
        address: Endpoint, on loop: RunLoop, modes: RunLoop.Modes, options: Listener.Options = Options(),
        handler: Listener.AcceptHandler? = nil, file: StaticString = #fileID, line: UInt32 = #line
    ) throws {
        try self.init(
            address: address, on: loop, inModes: modes, options: options, handler: handler, file: file, line: line)
    }

    /// The former spelling: the label is `inModes:` now.
    @available(*, deprecated, renamed: "init(inherited:on:inModes:options:handler:file:line:)")
    public convenience init(
        inherited descriptor: Int32, on loop: RunLoop, modes: RunLoop.Modes, options: Listener.Options = Options(),
        handler: Listener.AcceptHandler? = nil, file: StaticString = #fileID, line: UInt32 = #line
    ) throws {
        try self.init(
            inherited: descriptor, on: loop, inModes: modes, options: options, handler: handler, file: file, line: line)
    }
}

extension Watchdog {
    /// The former name of ``feedingCount``.
    @available(*, deprecated, renamed: "feedingCount")
    public var feedings: Int { feedingCount }

    /// The former spelling: the label is `inModes:` now.
    @available(*, deprecated, renamed: "init(_:loop:inModes:watching:)")
    public convenience init?(
        _ manager: ServiceManager, loop: RunLoop, modes: RunLoop.Modes, watching others: [RunLoop.Remote] = []
    ) {
        self.init(manager, loop: loop, inModes: modes, watching: others)
    }
}
