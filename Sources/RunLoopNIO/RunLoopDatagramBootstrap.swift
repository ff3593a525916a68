#if Adapters
public import NIOCore

/// Sends and receives datagrams with the handlers of SwiftNIO, on run loops.
///
/// ```swift
/// let channel = try await RunLoopDatagramBootstrap(group: loop.nio)
///     .channelInitializer { $0.pipeline.addHandler(Resolver()) }
///     .bind(host: "127.0.0.1", port: 53)
///     .get()
/// ```
///
/// Input is an `AddressedEnvelope<ByteBuffer>`; a Unix socket without a name is an address with an empty path. Output is an
/// envelope, or a `ByteBuffer` for the peer that the socket is connected to. The promise of a write succeeds when the system has the
/// datagram. The channel is a `MulticastChannel`. A datagram that a peer refuses is an error for the handlers; the channel
/// stays open.
///
/// The options for the size of datagrams, the number for a read, and for shared addresses count before the socket is
/// bound. A datagram longer than `recvAllocator` allows, 65,535 bytes unless set, is truncated.
///
/// The counterpart of SwiftNIO's `DatagramBootstrap`, which demands event loops of its own. Not `Sendable`; used by one
/// thread at a time. In a simulation the socket is one of its loop's host.
public final class RunLoopDatagramBootstrap {
    private let group: any EventLoopGroup
    private var options = ChannelOptions.Storage()
    private var initializer: (@Sendable (any Channel) -> EventLoopFuture<Void>)?

    /// - Parameter group: the event loop of the socket, or a group of which one is.
    /// - Precondition: the event loops are ``RunLoopEventLoop``s.
    public init(group: any EventLoopGroup) {
        self.group = group
    }

    /// Prepares the channel before it is active.
    public func channelInitializer(_ initializer: @escaping @Sendable (any Channel) -> EventLoopFuture<Void>) -> Self {
        self.initializer = initializer
        return self
    }

    /// Sets an option of the channel.
    public func channelOption<Option: ChannelOption>(_ option: Option, value: Option.Value) -> Self {
        options.append(key: option, value: value)
        return self
    }

    /// Receives at an address in digits. With port 0 the system chooses; the channel's `localAddress` has the port.
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

    /// Has an address in digits as the only peer; the system chooses the own address.
    public func connect(host: String, port: Int) -> EventLoopFuture<any Channel> {
        open { $0.pipeline.connect(to: try SocketAddress(ipAddress: host, port: port), promise: $1) }
    }

    /// Has an address as the only peer; the system chooses the own address.
    public func connect(to address: SocketAddress) -> EventLoopFuture<any Channel> {
        open { $0.pipeline.connect(to: address, promise: $1) }
    }

    /// Has the path of a Unix socket as the only peer. The own socket has no name, so it gets no answers.
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
