#if Adapters
public import NIOCore

/// A bootstrap for datagram channels that use SwiftNIO's handlers on run loops.
///
/// ```swift
/// let channel = try await RunLoopDatagramBootstrap(group: loop.nio)
///     .channelInitializer { $0.pipeline.addHandler(Resolver()) }
///     .bind(host: "127.0.0.1", port: 53)
///     .get()
/// ```
///
/// Input is an `AddressedEnvelope<ByteBuffer>`; a Unix socket without a name is an address with an empty path. Output
/// is an envelope, or a `ByteBuffer` for the connected peer. The promise of a write succeeds when the system has
/// accepted the datagram. The channel is a `MulticastChannel`. If a peer refuses a datagram, the handlers receive an
/// error, and the channel stays open.
///
/// The options for the size of datagrams, their number per read, and shared addresses take effect only before the
/// socket is bound. Datagrams longer than `recvAllocator` allows, by default 65,535 bytes, are truncated.
///
/// Replaces SwiftNIO's `DatagramBootstrap`, which accepts only SwiftNIO's event loops. Not `Sendable`; only one thread
/// at a time may use it. In a simulation, the socket belongs to its loop's host.
public final class RunLoopDatagramBootstrap {
    private let group: any EventLoopGroup
    private var options = ChannelOptions.Storage()
    private var initializer: (@Sendable (any Channel) -> EventLoopFuture<Void>)?

    /// - Parameter group: the socket's event loop, or a group that contains it.
    /// - Precondition: the event loops are ``RunLoopEventLoop``s.
    public init(group: any EventLoopGroup) {
        self.group = group
    }

    /// Sets the closure that prepares the channel before it is active.
    public func channelInitializer(_ initializer: @escaping @Sendable (any Channel) -> EventLoopFuture<Void>) -> Self {
        self.initializer = initializer
        return self
    }

    /// Sets an option of the channel.
    public func channelOption<Option: ChannelOption>(_ option: Option, value: Option.Value) -> Self {
        options.append(key: option, value: value)
        return self
    }

    /// Receives at an address in digits. Port 0 lets the system choose; the channel's `localAddress` has the port.
    public func bind(host: String, port: Int) -> EventLoopFuture<any Channel> {
        open { $0.pipeline.bind(to: try SocketAddress(ipAddress: host, port: port), promise: $1) }
    }

    /// Receives at an address.
    public func bind(to address: SocketAddress) -> EventLoopFuture<any Channel> {
        open { $0.pipeline.bind(to: address, promise: $1) }
    }

    /// Receives at the path of a Unix socket.
    public func bind(unixDomainSocketPath path: String) -> EventLoopFuture<any Channel> {
        open { $0.pipeline.bind(to: try SocketAddress(unixDomainSocketPath: path), promise: $1) }
    }

    /// Connects to an address in digits as the only peer; the system chooses the local address.
    public func connect(host: String, port: Int) -> EventLoopFuture<any Channel> {
        open { $0.pipeline.connect(to: try SocketAddress(ipAddress: host, port: port), promise: $1) }
    }

    /// Connects to an address as the only peer; the system chooses the local address.
    public func connect(to address: SocketAddress) -> EventLoopFuture<any Channel> {
        open { $0.pipeline.connect(to: address, promise: $1) }
    }

    /// Connects to the path of a Unix socket as the only peer. The local socket has no name, so it receives no answers.
    public func connect(unixDomainSocketPath path: String) -> EventLoopFuture<any Channel> {
        open { $0.pipeline.connect(to: try SocketAddress(unixDomainSocketPath: path), promise: $1) }
    }

    /// Takes over a socket, for example one from a service manager. The channel owns the descriptor.
    public func withBoundSocket(_ descriptor: Int32) -> EventLoopFuture<any Channel> {
        open { $0.adopt(descriptor, promise: $1) }
    }

    private func open(
        _ begin: @escaping @Sendable (DatagramChannel, EventLoopPromise<Void>) throws -> Void
    ) -> EventLoopFuture<any Channel> {
        let eventLoop = RunLoopEventLoop.of(group)
        let (options, initializer) = (options, initializer)
        return eventLoop.flatSubmit {
            let channel = DatagramChannel(on: eventLoop)
            return channel.prepare(options, initializer) {
                channel.register().flatMap { eventLoop.promising { try begin(channel, $0) } }
            }
        }
    }
}

@available(*, unavailable, message: "one thread at a time uses a bootstrap")
extension RunLoopDatagramBootstrap: Sendable {}
#endif
