#if Adapters
internal import RunLoopCore
internal import RunLoopKit

/// The channels whose flushed output waits until others that were found ready with them have been read.
///
/// Output that reaches a sleeping process wakes it, which takes up to a tenth of the processor time of an exchange; output
/// that follows soon finds it awake. Redis sends the replies of a pass together, too. Here the first reply leaves at
/// once, and the next ones in groups of 4 and then 8: receivers begin their work early, and no output waits for the
/// handlers of more than 7 other channels. After handlers that take long it begins anew.
// On the loop's thread only. For `@exclusivity(unchecked)`, see `StreamChannel`.
final class FlushGroup {
    @exclusivity(unchecked) private var channels: [StreamChannel] = []
    /// The number of channels that are read before output is sent.
    @exclusivity(unchecked) private var size = 1
    /// The number of channels that were read since output was sent.
    @exclusivity(unchecked) private var readCount = 0
    @exclusivity(unchecked) private var isSendPosted = false

    /// The time when a group was last sent.
    @exclusivity(unchecked) private var lastSent = RunLoop.Instant.distantPast

    private static let largestSize = 8
    /// The longest time that a channel may take if others are to wait for it: a few times that of a request of HTTP.
    private static let longestRead: Int64 = 50_000

    /// Whether the next channel to be read is the first of those that were found ready.
    var isFresh: Bool { size == 1 }

    /// Sends the output of `channel` with that of the others, or earlier if a handler runs the loop.
    func add(_ channel: StreamChannel, on loop: RunLoop) {
        channels.append(channel)
        guard !isSendPosted else { return }
        isSendPosted = true
        loop.perform(inModes: .every) { [self] in
            isSendPosted = false
            send()
        }
    }

    /// Called when a channel has been read and its handlers have returned.
    func channelWasRead(on loop: RunLoop?) {
        readCount += 1
        let isLast = loop?.hasReadyDescriptors != true
        guard isLast || readCount == size else { return }
        send()
        size = isLast || takesLong(on: loop!) ? 1 : min(4 * size, Self.largestSize)
        readCount = 0
    }

    /// Whether the channels of the group that was just sent took long.
    private func takesLong(on loop: RunLoop) -> Bool {
        let begin = max(lastSent, loop.passTime)
        lastSent = loop.now
        return lastSent.nanoseconds - begin.nanoseconds > Int64(size) * Self.longestRead
    }

    func send() {
        guard !channels.isEmpty else { return }
        // Sending may call handlers, and these may run the loop.
        var sent: [StreamChannel] = []
        swap(&sent, &channels)
        for channel in sent {
            channel.flushDeferred()
            channel.updateInterest()
        }
        sent.removeAll(keepingCapacity: true)
        if channels.isEmpty { swap(&sent, &channels) }
    }
}
#endif
