#if Adapters
internal import NIOCore
@_spi(Ports) internal import RunLoopCore

/// The channels of a server's connections, from when they become active until they close. Any thread.
final class ServedChannels: Sendable {
    private struct State {
        var channels: [Int: StreamChannel] = [:]
        var added = 0
        var isQuiescing = false
        var promises: [EventLoopPromise<Void>] = []

        /// The channels in the order in which they came, so that a simulation is the same each time.
        var inOrder: [StreamChannel] { channels.sorted { $0.key < $1.key }.map(\.value) }
    }

    private let state = Locked(State())

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
    func quiesce(_ promise: EventLoopPromise<Void>) {
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
    func closeAll(_ promise: EventLoopPromise<Void>) {
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
