internal import NIOCore
internal import RunLoopKit

/// The channels of a loop's connections, which its stop closes. On the loop's thread.
final class OpenChannels {
    static let ofLoop = RunLoop.Local { _ in OpenChannels() }

    private var channels: [Int: any Channel] = [:]
    private var added = 0

    /// - Returns: the number with which to remove the channel.
    func add(_ channel: any Channel) -> Int {
        added += 1
        channels[added] = channel
        return added
    }

    func remove(_ number: Int) {
        channels[number] = nil
    }

    /// Asks each connection to finish its requests and close.
    func quiesce() {
        for channel in inOrder { channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent()) }
    }

    /// Closes each connection at once.
    func closeAll() {
        for channel in inOrder {
            channel.close(promise: nil)
            // The first waits for the client to read the end.
            channel.close(promise: nil)
        }
    }

    /// The channels, the oldest first, so that a simulation ends the same each time.
    private var inOrder: [any Channel] { channels.sorted { $0.key < $1.key }.map(\.value) }
}
