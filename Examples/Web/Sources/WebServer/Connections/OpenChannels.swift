internal import NIOCore
internal import RunLoopKit

/// The channels of a loop's connections, for its stop. On the loop's thread.
final class OpenChannels {
    static let ofLoop = RunLoop.Local { _ in OpenChannels() }

    private var channels: [Int: any Channel] = [:]
    private var added = 0

    /// - Returns: a number, with which to remove the channel.
    func add(_ channel: any Channel) -> Int {
        added += 1
        channels[added] = channel
        return added
    }

    func remove(_ number: Int) {
        channels[number] = nil
    }

    /// Asks each connection to finish its requests and close; the oldest first, so that a simulation ends the same each
    /// time.
    func quiesce() {
        for (_, channel) in channels.sorted(by: { $0.key < $1.key }) {
            channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
        }
    }
}
