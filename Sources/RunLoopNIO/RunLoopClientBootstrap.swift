#if Adapters
public import NIOCore
@_spi(Ports) internal import RunLoopCore
internal import RunLoopKit
@_spi(Ports) public import RunLoopTLS
@_spi(Ports) internal import RunLoopUnix

/// A bootstrap for clients that use SwiftNIO's handlers on run loops.
///
/// ```swift
/// let channel = try await RunLoopClientBootstrap(group: loop.nio)
///     .channelInitializer { $0.pipeline.addHTTPClientHandlers() }
///     .connect(host: "localhost", port: 8080)
///     .get()
/// ```
///
/// Replaces SwiftNIO's `ClientBootstrap`, which accepts only SwiftNIO's event loops. Not `Sendable`; only one thread at
/// a time may use it. In a simulation, the connection belongs to its loop's host.
public final class RunLoopClientBootstrap: NIOClientTCPBootstrapProtocol {
    private let group: any EventLoopGroup
    private var options = ChannelOptions.Storage()
    private var initializer: (@Sendable (any Channel) -> EventLoopFuture<Void>)?
    private var timeout = TimeAmount.seconds(10)
    private var tls: (context: TLSClientContext, serverName: String?)?

    /// - Parameter group: the connection's event loop, or a group that contains it.
    /// - Precondition: the event loops are ``RunLoopEventLoop``s.
    public init(group: any EventLoopGroup) {
        self.group = group
    }

    /// Sets the closure that prepares the channel before it is active.
    @preconcurrency
    public func channelInitializer(_ handler: @escaping @Sendable (any Channel) -> EventLoopFuture<Void>) -> Self {
        initializer = handler
        return self
    }

    public func protocolHandlers(_ handlers: @escaping @Sendable () -> [any ChannelHandler]) -> Self {
        let former = initializer
        return channelInitializer { channel in
            (former?(channel) ?? channel.eventLoop.makeSucceededVoidFuture()).flatMapThrowing {
                try channel.pipeline.syncOperations.addHandlers(handlers(), position: .first)
            }
        }
    }

    /// Makes the connection speak TLS.
    ///
    /// The connect future succeeds before the handshake. After the handshake, the channel becomes active, earlier
    /// writes are sent, and `TLSUserEvent.handshakeCompleted` has the application protocol. If the handshake fails, the
    /// handlers receive the `TLSError`, and the channel closes without having been active.
    ///
    /// - Parameters:
    ///   - context: the settings.
    ///   - serverName: the name or the address in digits that the server's certificate must be for; by default the host
    ///     or the address of the connection.
    public func tls(_ context: TLSClientContext, serverName: String? = nil) -> Self {
        tls = (context, serverName)
        return self
    }

    private func layer(for host: String?) -> StreamChannel.Layer? {
        guard let (context, name) = tls else { return nil }
        return { try context.stream(over: $0, serverName: name ?? host ?? "") }
    }

    /// Sets an option of the channel.
    public func channelOption<Option: ChannelOption>(_ option: Option, value: Option.Value) -> Self {
        options.append(key: option, value: value)
        return self
    }

    /// Sets the time that connecting may take, for all addresses together; by default 10 s.
    public func connectTimeout(_ timeout: TimeAmount) -> Self {
        self.timeout = timeout
        return channelOption(ChannelOptions.connectTimeout, value: timeout)
    }

    /// Looks up a host and connects to the first of its addresses that answers, as in RFC 8305.
    ///
    /// The channel is made after the socket is connected.
    public func connect(host: String, port: Int) -> EventLoopFuture<any Channel> {
        let eventLoop = RunLoopEventLoop.of(group)
        let timeout = timeout
        guard let port = UInt16(exactly: port) else {
            return eventLoop.makeFailedFuture(SocketAddressError.unsupported)
        }
        let promise = eventLoop.makePromise(of: StreamChannel.self)
        let layer = layer(for: host)
        eventLoop.onLoop {
            guard let loop = eventLoop.loop else { return promise.fail(EventLoopError.shutdown) }
            eventLoop.atEnd(of: promise.futureResult) { promise.fail(EventLoopError.shutdown) }
            _ = ConnectionAttempt(
                .host(host, port: port), on: loop, eventLoop.modes, timeout: Duration(timeout), retry: nil,
                RunLoop.Origin(file: #fileID, line: #line)
            ) { result in
                eventLoop.forget(promise.futureResult)
                switch result {
                case .success(let stream):
                    let peer = WorldSystem.of(loop).peerAddress(of: stream.fileDescriptor)
                    promise.succeed(StreamChannel(stream, peer: peer, under: layer, on: eventLoop))
                case .failure(let error): promise.fail(StreamChannel.error(error, timeout: timeout))
                }
            }
        }
        return connect(promise.futureResult) { channel in
            guard let address = channel.remoteAddress else {
                return eventLoop.makeFailedFuture(ChannelError.ioOnClosedChannel)
            }
            return channel.register().flatMap { channel.connect(to: address) }
        }
    }

    /// Connects to an address.
    public func connect(to address: SocketAddress) -> EventLoopFuture<any Channel> {
        let eventLoop = RunLoopEventLoop.of(group)
        let layer = layer(for: address.ipAddress)
        let made = eventLoop.submit { StreamChannel(nil, under: layer, on: eventLoop) }
        return connect(made) { channel in channel.register().flatMap { channel.connect(to: address) } }
    }

    /// Connects to the path of a Unix socket.
    public func connect(unixDomainSocketPath path: String) -> EventLoopFuture<any Channel> {
        do {
            return connect(to: try SocketAddress(unixDomainSocketPath: path))
        } catch {
            return RunLoopEventLoop.of(group).makeFailedFuture(error)
        }
    }

    /// Takes over a connected socket. The channel owns the descriptor.
    public func withConnectedSocket(_ descriptor: Int32) -> EventLoopFuture<any Channel> {
        let eventLoop = RunLoopEventLoop.of(group)
        let layer = layer(for: nil)
        let made = eventLoop.submit {
            guard let loop = eventLoop.loop else { throw EventLoopError.shutdown }
            let peer = WorldSystem.of(loop).peerAddress(of: descriptor)
            let stream = loop.makeStream(reading: descriptor, writing: descriptor)
            return StreamChannel(stream, peer: peer, under: layer, on: eventLoop)
        }
        return connect(made) { channel in eventLoop.promising { channel.registerAlreadyConfigured0(promise: $0) } }
    }

    // MARK: For tasks

    /// Looks up a host and connects to it; see ``connect(host:port:)``.
    ///
    /// - Parameters:
    ///   - host: a name, or an address in digits.
    ///   - port: the port.
    ///   - channelInitializer: prepares the channel, instead of ``channelInitializer(_:)``.
    /// - Returns: the result of the initializer, for example a `NIOAsyncChannel`.
    public func connect<Output: Sendable>(
        host: String, port: Int,
        channelInitializer: @escaping @Sendable (any Channel) -> EventLoopFuture<Output>
    ) async throws -> Output {
        try await connect(channelInitializer) { $0.connect(host: host, port: port) }.get()
    }

    /// Connects to an address; see ``connect(host:port:channelInitializer:)``.
    public func connect<Output: Sendable>(
        to address: SocketAddress, channelInitializer: @escaping @Sendable (any Channel) -> EventLoopFuture<Output>
    ) async throws -> Output {
        try await connect(channelInitializer) { $0.connect(to: address) }.get()
    }

    /// Connects to the path of a Unix socket; see ``connect(host:port:channelInitializer:)``.
    public func connect<Output: Sendable>(
        unixDomainSocketPath path: String,
        channelInitializer: @escaping @Sendable (any Channel) -> EventLoopFuture<Output>
    ) async throws -> Output {
        try await connect(channelInitializer) { $0.connect(unixDomainSocketPath: path) }.get()
    }

    private func connect<Output: Sendable>(
        _ initializer: @escaping @Sendable (any Channel) -> EventLoopFuture<Output>,
        _ connect: (RunLoopClientBootstrap) -> EventLoopFuture<any Channel>
    ) -> EventLoopFuture<Output> {
        let output = Locked<Output?>(nil)
        let bootstrap = channelInitializer { channel in
            initializer(channel).map { result in output.withLock { $0 = result } }
        }
        return connect(bootstrap).flatMapThrowing { _ in
            guard let result = output.withLock({ $0 }) else { throw ChannelError.ioOnClosedChannel }
            return result
        }
    }

    private func connect(
        _ made: EventLoopFuture<StreamChannel>, _ begin: @escaping @Sendable (StreamChannel) -> EventLoopFuture<Void>
    ) -> EventLoopFuture<any Channel> {
        let (options, initializer) = (options, initializer)
        return made.flatMap { channel in channel.prepare(options, initializer) { begin(channel) } }
    }
}

@available(*, unavailable, message: "one thread at a time uses a bootstrap")
extension RunLoopClientBootstrap: Sendable {}

extension Channel {
    /// The TLS session below a channel of ``RunLoopServerBootstrap`` or ``RunLoopClientBootstrap``, which has, for
    /// example, the subject of the peer's certificate; `nil` if the channel does not speak TLS or is closed. Use it on
    /// the event loop's thread.
    public var tls: TLSSession? {
        eventLoop.preconditionInEventLoop()
        return (self as? StreamChannel)?.tls
    }
}
#endif
