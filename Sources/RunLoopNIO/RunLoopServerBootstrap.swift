#if Adapters
public import NIOCore
@_spi(Ports) internal import RunLoopCore
@_spi(Ports) public import RunLoopTLS

/// A bootstrap for servers that use SwiftNIO's handlers on run loops.
///
/// ```swift
/// let server = try await RunLoopServerBootstrap(group: loop.nio)
///     .childChannelInitializer { channel in
///         channel.eventLoop.makeCompletedFuture {
///             try channel.pipeline.syncOperations.configureHTTPServerPipeline()
///             try channel.pipeline.syncOperations.addHandler(Router())
///         }
///     }
///     .bind(host: "127.0.0.1", port: 8080)
///     .get()
/// ```
///
/// `server.close()` resets the connections that the system has established and the server has not accepted.
/// `server.close(mode: .input)` accepts them first; on SwiftNIO's own listeners that mode is an error.
///
/// Replaces SwiftNIO's `ServerBootstrap`, which accepts only SwiftNIO's event loops. Not `Sendable`; only one thread at
/// a time may use it. In a simulation, the server belongs to its loop's host.
public final class RunLoopServerBootstrap {
    private let group: any EventLoopGroup
    private let childGroup: any EventLoopGroup
    private var options = ChannelOptions.Storage()
    private var childOptions = ChannelOptions.Storage()
    private var initializer: (@Sendable (any Channel) -> EventLoopFuture<Void>)?
    private var layer: StreamChannel.Layer?
    private var childInitializer: (@Sendable (any Channel) -> EventLoopFuture<Void>)?
    private let served = ServedChannels()

    /// - Parameters:
    ///   - group: the event loop that accepts connections, or a group that contains it.
    ///   - childGroup: the event loops of the connections, in turn; by default `group`.
    /// - Precondition: the event loops are ``RunLoopEventLoop``s.
    public init(group: any EventLoopGroup, childGroup: (any EventLoopGroup)? = nil) {
        self.group = group
        self.childGroup = childGroup ?? group
    }

    /// Sets the closure that prepares the listener's channel before it listens.
    public func serverChannelInitializer(
        _ initializer: @escaping @Sendable (any Channel) -> EventLoopFuture<Void>
    ) -> Self {
        self.initializer = initializer
        return self
    }

    /// Sets the closure that prepares the channel of each connection before it is active. A failure closes the
    /// connection.
    public func childChannelInitializer(
        _ initializer: @escaping @Sendable (any Channel) -> EventLoopFuture<Void>
    ) -> Self {
        childInitializer = initializer
        return self
    }

    /// Makes each connection speak TLS.
    ///
    /// After the handshake, the channel becomes active, and `TLSUserEvent.handshakeCompleted` has the application
    /// protocol, for SwiftNIO's `ApplicationProtocolNegotiationHandler` and others. If the handshake fails, the
    /// handlers receive the `TLSError`, and the channel closes without having been active. A channel's `tls` property
    /// has its session.
    ///
    /// - Parameter context: called for each connection, on its event loop's thread; return another context when
    ///   certificates have changed.
    public func childTLS(_ context: @escaping @Sendable () -> TLSServerContext) -> Self {
        layer = { try context().stream(over: $0) }
        return self
    }

    /// Sets an option of the listener.
    public func serverChannelOption<Option: ChannelOption>(_ option: Option, value: Option.Value) -> Self {
        options.append(key: option, value: value)
        return self
    }

    /// Sets an option of each connection.
    public func childChannelOption<Option: ChannelOption>(_ option: Option, value: Option.Value) -> Self {
        childOptions.append(key: option, value: value)
        return self
    }

    /// Listens on an address in digits. Port 0 lets the system choose; the channel's `localAddress` has the port.
    ///
    /// - Returns: a future of the listener's channel, which fails with an `IOError`, for example with `EADDRINUSE`.
    public func bind(host: String, port: Int) -> EventLoopFuture<any Channel> {
        listen { $0.pipeline.bind(to: try SocketAddress(ipAddress: host, port: port), promise: $1) }
    }

    /// Listens on the path of a Unix socket.
    public func bind(unixDomainSocketPath path: String) -> EventLoopFuture<any Channel> {
        listen { $0.pipeline.bind(to: try SocketAddress(unixDomainSocketPath: path), promise: $1) }
    }

    /// Listens on an address.
    public func bind(to address: SocketAddress) -> EventLoopFuture<any Channel> {
        listen { $0.pipeline.bind(to: address, promise: $1) }
    }

    /// Accepts on a descriptor that is already listening, for example one from a service manager. The channel owns it.
    public func withBoundSocket(_ descriptor: Int32) -> EventLoopFuture<any Channel> {
        listen { $0.adopt(descriptor, promise: $1) }
    }

    // MARK: For tasks

    /// Listens on an address in digits, and returns a channel from which a task takes connections.
    ///
    /// ```swift
    /// let server = try await bootstrap.bind(host: "127.0.0.1", port: 8080) { channel in
    ///     channel.eventLoop.makeCompletedFuture {
    ///         try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
    ///     }
    /// }
    /// try await server.executeThenClose { connections in
    ///     for try await connection in connections { … }
    /// }
    /// ```
    ///
    /// The listener accepts no more connections than the back-pressure strategy allows.
    ///
    /// - Parameters:
    ///   - host: an address in digits.
    ///   - port: the port; 0 lets the system choose.
    ///   - serverBackPressureStrategy: when to stop accepting; by default SwiftNIO's choice.
    ///   - childChannelInitializer: prepares the channel of each connection, instead of
    ///     ``childChannelInitializer(_:)``; the task takes its result. A failure closes the connection.
    public func bind<Output: Sendable>(
        host: String, port: Int, serverBackPressureStrategy: BackPressureStrategy? = nil,
        childChannelInitializer: @escaping @Sendable (any Channel) -> EventLoopFuture<Output>
    ) async throws -> NIOAsyncChannel<Output, Never> {
        try await listen(serverBackPressureStrategy, childChannelInitializer) {
            $0.pipeline.bind(to: try SocketAddress(ipAddress: host, port: port), promise: $1)
        }.get()
    }

    /// Listens on an address for a task that takes connections; see
    /// ``bind(host:port:serverBackPressureStrategy:childChannelInitializer:)``.
    public func bind<Output: Sendable>(
        to address: SocketAddress, serverBackPressureStrategy: BackPressureStrategy? = nil,
        childChannelInitializer: @escaping @Sendable (any Channel) -> EventLoopFuture<Output>
    ) async throws -> NIOAsyncChannel<Output, Never> {
        try await listen(serverBackPressureStrategy, childChannelInitializer) {
            $0.pipeline.bind(to: address, promise: $1)
        }.get()
    }

    /// Listens on the path of a Unix socket for a task that takes connections; see
    /// ``bind(host:port:serverBackPressureStrategy:childChannelInitializer:)``.
    public func bind<Output: Sendable>(
        unixDomainSocketPath path: String, serverBackPressureStrategy: BackPressureStrategy? = nil,
        childChannelInitializer: @escaping @Sendable (any Channel) -> EventLoopFuture<Output>
    ) async throws -> NIOAsyncChannel<Output, Never> {
        try await listen(serverBackPressureStrategy, childChannelInitializer) {
            $0.pipeline.bind(to: try SocketAddress(unixDomainSocketPath: path), promise: $1)
        }.get()
    }

    /// A strategy that decides when a listener stops and resumes accepting.
    public typealias BackPressureStrategy = NIOAsyncSequenceProducerBackPressureStrategies.HighLowWatermark

    private func listen<Output: Sendable>(
        _ strategy: BackPressureStrategy?,
        _ childInitializer: @escaping @Sendable (any Channel) -> EventLoopFuture<Output>, begin: @escaping Beginning
    ) -> EventLoopFuture<NIOAsyncChannel<Output, Never>> {
        let accepted = Locked<NIOAsyncChannel<Output, Never>?>(nil)
        return listen(begin) { [childOptions, served] channel in
            try channel.pipeline.syncOperations.addHandler(
                AcceptingHandler(
                    options: childOptions, initializer: childInitializer, served: served, isForTasks: true))
            var configuration = NIOAsyncChannel<Output, Never>.Configuration()
            if let strategy { configuration.backPressureStrategy = strategy }
            let channel = try NIOAsyncChannel<Output, Never>(
                wrappingChannelSynchronously: channel, configuration: configuration)
            accepted.withLock { $0 = channel }
        }
        .flatMapThrowing { _ in
            guard let channel = accepted.withLock({ $0.take() }) else { throw ChannelError.ioOnClosedChannel }
            return channel
        }
    }

    // MARK: The end

    /// Asks the connections of all listeners of this bootstrap to finish, each by a `ChannelShouldQuiesceEvent`.
    ///
    /// SwiftNIO's `HTTPServerPipelineHandler` obeys the event: it answers what has been asked, and closes. A connection whose
    /// handlers do not know it stays until it closes otherwise. A connection that comes later gets the event too, but
    /// close the listeners first, with `close(mode: .input)`.
    ///
    /// Takes the place of `ServerQuiescingHelper` in swift-nio-extras. The thread that uses the bootstrap; O(n log n).
    ///
    /// - Returns: a future that succeeds when no connection is open.
    public func quiesce() -> EventLoopFuture<Void> {
        let promise = RunLoopEventLoop.of(group).makePromise(of: Void.self)
        served.quiesce(promise)
        return promise.futureResult
    }

    /// Closes the open connections of all listeners of this bootstrap at once: output that a peer has not accepted is
    /// lost. The thread that uses the bootstrap; O(n log n).
    ///
    /// - Returns: a future that succeeds when no connection is open.
    @discardableResult
    public func closeConnections() -> EventLoopFuture<Void> {
        let promise = RunLoopEventLoop.of(group).makePromise(of: Void.self)
        served.closeAll(promise)
        return promise.futureResult
    }

    // MARK: The listener

    private typealias Beginning = @Sendable (ListeningChannel, EventLoopPromise<Void>) throws -> Void

    private func listen(begin: @escaping Beginning) -> EventLoopFuture<any Channel> {
        let (options, initializer) = (childOptions, childInitializer ?? { $0.eventLoop.makeSucceededVoidFuture() })
        return listen(begin) { [served] channel in
            try channel.pipeline.syncOperations.addHandler(
                AcceptingHandler(options: options, initializer: initializer, served: served, isForTasks: false))
        }
    }

    /// - Parameter addHandler: adds the handler that prepares connections, after the program's handlers.
    private func listen(
        _ begin: @escaping Beginning, addHandler: @escaping @Sendable (any Channel) throws -> Void
    ) -> EventLoopFuture<any Channel> {
        let eventLoop = RunLoopEventLoop.of(group)
        let (options, initializer) = (options, initializer)
        let (childGroup, layer, served) = (childGroup, layer, served)
        return eventLoop.flatSubmit {
            let channel = ListeningChannel(on: eventLoop, children: childGroup, under: layer, served: served)
            return channel.prepare(options, initializer) {
                eventLoop.makeCompletedFuture { try addHandler(channel) }
                    .flatMap { channel.register() }
                    .flatMap { eventLoop.promising { try begin(channel, $0) } }
            }
        }
    }
}

@available(*, unavailable, message: "one thread at a time uses a bootstrap")
extension RunLoopServerBootstrap: Sendable {}

extension RunLoopEventLoop {
    /// Returns a group's next event loop.
    static func of(_ group: any EventLoopGroup) -> RunLoopEventLoop {
        guard let eventLoop = group.next() as? RunLoopEventLoop else {
            preconditionFailure("a bootstrap for run loops needs their event loops, such as loop.nio")
        }
        return eventLoop
    }

    /// Returns the result of an operation that fulfils a promise or throws.
    func promising(_ operation: (EventLoopPromise<Void>) throws -> Void) -> EventLoopFuture<Void> {
        let promise = makePromise(of: Void.self)
        do { try operation(promise) } catch { promise.fail(error) }
        return promise.futureResult
    }
}

/// The handler that prepares accepted connections.
private final class AcceptingHandler<Output: Sendable>: ChannelInboundHandler, ChannelOutboundHandler {
    typealias InboundIn = any Channel
    typealias OutboundIn = Never

    private let options: ChannelOptions.Storage
    private let initializer: @Sendable (any Channel) -> EventLoopFuture<Output>
    private let served: ServedChannels
    /// True if the initializer's result is passed on instead of the channel.
    private let isForTasks: Bool
    /// The number of connections that are being prepared.
    private var preparing = 0
    /// Closes the channel after the last of these connections; set when the input is closed.
    private var closeAll: (() -> Void)?

    init(
        options: ChannelOptions.Storage, initializer: @escaping @Sendable (any Channel) -> EventLoopFuture<Output>,
        served: ServedChannels, isForTasks: Bool
    ) {
        (self.options, self.initializer, self.served, self.isForTasks) = (options, initializer, served, isForTasks)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let channel = unwrapInboundIn(data)
        let (options, initializer) = (options, initializer)
        let ready = channel.eventLoop.flatSubmit {
            options.applyAllChannelOptions(to: channel).flatMap { initializer(channel) }
        }
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        preparing += 1
        ready.hop(to: context.eventLoop).whenComplete { result in
            let (handler, context) = bound.value
            switch result {
            case .success(let output) where context.channel.isActive: handler.accept(channel, output, context)
            // The listener has closed meanwhile.
            case .success: channel.close(promise: nil)
            case .failure(let error):
                channel.close(promise: nil)
                // A task would take the error for the end of the listener.
                if !handler.isForTasks { context.fireErrorCaught(error) }
            }
            handler.preparing -= 1
            handler.closeIfFinished()
        }
    }

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        guard mode == .input, closeAll == nil else { return context.close(mode: mode, promise: promise) }
        // This call reads the waiting connections.
        context.close(mode: .input, promise: nil)
        closeAll = { context.close(mode: .all, promise: promise) }
        closeIfFinished()
    }

    private func closeIfFinished() {
        if preparing == 0 { closeAll.take()?() }
    }

    private func accept(_ channel: any Channel, _ output: Output, _ context: ChannelHandlerContext) {
        // Handlers of the listener may still refuse the channel.
        guard isForTasks else { return context.fireChannelRead(NIOAny(channel)) }
        context.fireChannelRead(NIOAny(output))
        // The listener's own event has come already.
        context.fireChannelReadComplete()
        ListeningChannel.begin(channel, served)
    }
}
#endif
