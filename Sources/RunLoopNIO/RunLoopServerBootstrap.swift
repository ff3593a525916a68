#if Adapters
public import NIOCore
public import RunLoopTLS

/// Listens for connections with the handlers of SwiftNIO, on run loops.
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
/// The counterpart of SwiftNIO's `ServerBootstrap`, which demands event loops of its own. Not `Sendable`; used by one
/// thread at a time. In a simulation the server is one of its loop's host.
public final class RunLoopServerBootstrap {
    private let group: any EventLoopGroup
    private let childGroup: any EventLoopGroup
    private var options = ChannelOptions.Storage()
    private var childOptions = ChannelOptions.Storage()
    private var initializer: (@Sendable (any Channel) -> EventLoopFuture<Void>)?
    private var layer: StreamChannel.Layer?
    private var childInitializer: (@Sendable (any Channel) -> EventLoopFuture<Void>)?

    /// - Parameters:
    ///   - group: the event loop that accepts, or a group of which one does.
    ///   - childGroup: the event loops of the connections, in turn; those of `group` unless given.
    /// - Precondition: the event loops are ``RunLoopEventLoop``s.
    public init(group: any EventLoopGroup, childGroup: (any EventLoopGroup)? = nil) {
        self.group = group
        self.childGroup = childGroup ?? group
    }

    /// Prepares the channel of the listener, before it listens.
    public func serverChannelInitializer(
        _ initializer: @escaping @Sendable (any Channel) -> EventLoopFuture<Void>
    ) -> Self {
        self.initializer = initializer
        return self
    }

    /// Prepares the channel of each connection, before it is active. A failure closes the connection.
    public func childChannelInitializer(
        _ initializer: @escaping @Sendable (any Channel) -> EventLoopFuture<Void>
    ) -> Self {
        childInitializer = initializer
        return self
    }

    /// Has each connection speak TLS.
    ///
    /// The handshake comes before the connection's handlers: when it is done, the channel becomes active, and
    /// `TLSUserEvent.handshakeCompleted` has the application protocol, for SwiftNIO's
    /// `ApplicationProtocolNegotiationHandler` and others. If it fails, the handlers receive the `TLSError`, and the
    /// channel closes without having been active. See `tls` of a channel for its session.
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
    /// - Returns: the channel of the listener; it fails with an `IOError`, for example with `EADDRINUSE`.
    public func bind(host: String, port: Int) -> EventLoopFuture<any Channel> {
        bind { try SocketAddress(ipAddress: host, port: port) }
    }

    /// Listens on the path of a Unix socket.
    public func bind(unixDomainSocketPath path: String) -> EventLoopFuture<any Channel> {
        bind { try SocketAddress(unixDomainSocketPath: path) }
    }

    /// Listens on an address.
    public func bind(to address: SocketAddress) -> EventLoopFuture<any Channel> { bind { address } }

    private func bind(_ address: @escaping @Sendable () throws -> SocketAddress) -> EventLoopFuture<any Channel> {
        listen { channel, promise in
            do {
                channel.pipeline.bind(to: try address(), promise: promise)
            } catch {
                promise.fail(error)
            }
        }
    }

    /// Accepts on a descriptor that listens already, for example one from a service manager. The channel owns it.
    public func withBoundSocket(_ descriptor: Int32) -> EventLoopFuture<any Channel> {
        listen { $0.adopt(descriptor, promise: $1) }
    }

    private func listen(
        _ begin: @escaping @Sendable (ListeningChannel, EventLoopPromise<Void>) -> Void
    ) -> EventLoopFuture<any Channel> {
        let eventLoop = RunLoopEventLoop.of(group)
        let (options, initializer) = (options, initializer)
        let (childGroup, childOptions, childInitializer) = (childGroup, childOptions, childInitializer)
        let layer = layer
        return eventLoop.flatSubmit {
            let channel = ListeningChannel(on: eventLoop, children: childGroup, under: layer)
            return channel.prepare(options, initializer) {
                let handler = AcceptingHandler(options: childOptions, initializer: childInitializer)
                return eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(handler) }
                    .flatMap { channel.register() }
                    .flatMap {
                        let promise = eventLoop.makePromise(of: Void.self)
                        begin(channel, promise)
                        return promise.futureResult
                    }
            }
        }
    }
}

@available(*, unavailable, message: "one thread at a time uses a bootstrap")
extension RunLoopServerBootstrap: Sendable {}

extension RunLoopEventLoop {
    /// The event loop of a group that is to serve one more channel.
    static func of(_ group: any EventLoopGroup) -> RunLoopEventLoop {
        guard let eventLoop = group.next() as? RunLoopEventLoop else {
            preconditionFailure("a bootstrap for run loops needs their event loops, such as loop.nio")
        }
        return eventLoop
    }
}

/// Prepares the connections that a listener has accepted.
private final class AcceptingHandler: ChannelInboundHandler {
    typealias InboundIn = any Channel
    typealias InboundOut = any Channel

    private let options: ChannelOptions.Storage
    private let initializer: (@Sendable (any Channel) -> EventLoopFuture<Void>)?

    init(options: ChannelOptions.Storage, initializer: (@Sendable (any Channel) -> EventLoopFuture<Void>)?) {
        (self.options, self.initializer) = (options, initializer)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let channel = unwrapInboundIn(data)
        let (options, initializer) = (options, initializer)
        let ready = channel.eventLoop.flatSubmit {
            options.applyAllChannelOptions(to: channel)
                .flatMap { initializer?(channel) ?? channel.eventLoop.makeSucceededVoidFuture() }
        }
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        ready.hop(to: context.eventLoop).whenComplete { result in
            let (handler, context) = bound.value
            switch result {
            case .success where context.channel.isActive: context.fireChannelRead(handler.wrapInboundOut(channel))
            // The listener has closed meanwhile.
            case .success: channel.close(promise: nil)
            case .failure(let error):
                channel.close(promise: nil)
                context.fireErrorCaught(error)
            }
        }
    }
}
#endif
