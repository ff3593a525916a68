#if Adapters
public import NIOCore
@_spi(Ports) internal import RunLoopCore
@_spi(Ports) public import RunLoopTLS
@_spi(Ports) public import RunLoopUnix

/// The channels of a server's connections, from when they become active until they close. Any thread.
///
/// A server that accepts with listeners of its own, instead of a ``RunLoopServerBootstrap``, passes each descriptor to
/// ``serve(_:from:on:tls:initializer:)``.
@_spi(Ports) public final class ServedChannels: Sendable {
    private struct State {
        var channels: [Int: StreamChannel] = [:]
        var added = 0
        var isQuiescing = false
        var promises: [EventLoopPromise<Void>] = []

        /// The channels in the order in which they came, so that a simulation is the same each time.
        var inOrder: [StreamChannel] { channels.sorted { $0.key < $1.key }.map(\.value) }
    }

    private let state = Locked(State())

    /// Creates a set without channels.
    public init() {}

    /// Makes a channel of an accepted connection, and activates it. Called on the thread of the event loop, once for each
    /// descriptor.
    ///
    /// - Parameters:
    ///   - descriptor: a connected, non-blocking socket, which the channel then owns.
    ///   - peer: the address of the other end.
    ///   - eventLoop: the event loop of the channel.
    ///   - tls: the context of the connection's TLS; `nil` for none. See ``RunLoopServerBootstrap/childTLS(_:)``.
    ///   - initializer: adds the handlers. If it throws, the connection is closed.
    /// - Precondition: the run loop of the event loop has not ended.
    public func serve(
        _ descriptor: Int32, from peer: Endpoint, on eventLoop: RunLoopEventLoop, tls: TLSServerContext?,
        initializer: (any Channel) throws -> Void
    ) {
        guard let loop = eventLoop.loop else {
            preconditionFailure("a connection is served on the thread of its run loop, before the loop ends")
        }
        let layer = tls.map { context -> StreamChannel.Layer in { try context.stream(over: $0) } }
        let channel = StreamChannel(
            loop.makeStream(reading: descriptor, writing: descriptor), peer: peer, under: layer, on: eventLoop)
        do { try initializer(channel) } catch { return channel.close(promise: nil) }
        ListeningChannel.begin(channel, self)
    }

    /// Adds a channel that has become active, or will before its loop's next block.
    func add(_ channel: StreamChannel) {
        let (number, isLate) = state.withLock { state in
            state.added += 1
            state.channels[state.added] = channel
            return (state.added, state.isQuiescing)
        }
        channel.closeFuture.whenComplete { [self] _ in remove(number) }
        if isLate { channel.loopOfChannel.execute { Self.quiesce(channel) } }
    }

    private func remove(_ number: Int) {
        let promises = state.withLock { state in
            state.channels[number] = nil
            guard state.channels.isEmpty else { return [] as [EventLoopPromise<Void>] }
            defer { state.promises = [] }
            return state.promises
        }
        for promise in promises { promise.succeed() }
    }

    /// Tells each channel, also later ones, to finish and to close.
    ///
    /// - Parameter promise: succeeds when none is left.
    public func quiesce(_ promise: EventLoopPromise<Void>) {
        let channels = state.withLock { state in
            if !state.channels.isEmpty { state.promises.append(promise) }
            defer { state.isQuiescing = true }
            return (toTell: state.isQuiescing ? [] : state.inOrder, areLeft: !state.channels.isEmpty)
        }
        if !channels.areLeft { promise.succeed() }
        for channel in channels.toTell { channel.loopOfChannel.onLoop { Self.quiesce(channel) } }
    }

    private static func quiesce(_ channel: StreamChannel) {
        channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
    }

    /// Closes each channel without waiting for its peer.
    ///
    /// - Parameter promise: succeeds when none is left.
    public func closeAll(_ promise: EventLoopPromise<Void>) {
        let channels = state.withLock { state in
            if !state.channels.isEmpty { state.promises.append(promise) }
            return state.inOrder
        }
        if channels.isEmpty { promise.succeed() }
        for channel in channels {
            channel.loopOfChannel.onLoop {
                channel.close(promise: nil)
                // The first call waits for the peer to read the end.
                channel.close(promise: nil)
            }
        }
    }
}
#endif
