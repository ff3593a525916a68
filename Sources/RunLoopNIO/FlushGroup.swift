#if Adapters
internal import RunLoopCore
internal import RunLoopKit

/// The channels whose flushed output waits until others that were found ready with them have been read.
///
/// Output that reaches a sleeping process wakes it, which takes up to a tenth of the processor time of an exchange; output
/// that follows soon finds it awake. Redis sends the replies of a pass together, too. Here the first reply leaves at
/// once, and then four at a time: receivers begin their work early, and no output waits for the handlers of more than
/// three other channels. After handlers that take long it begins anew.
// On the loop's thread only. For `@exclusivity(unchecked)`, see the channels.
final class FlushGroup {
    @exclusivity(unchecked) private var channels: [LoopChannel] = []
    /// Whether the next channel to be read is the first one, whose output leaves at once.
    @exclusivity(unchecked) private(set) var isFresh = true
    /// The number of channels that were read since output was sent.
    @exclusivity(unchecked) private var readCount = 0
    /// The time when that was.
    @exclusivity(unchecked) private var lastSent = RunLoop.Instant.distantPast
    @exclusivity(unchecked) private var isSendPosted = false

    private static let size = 4
    /// The longest time that a channel may take if others are to wait for it: a few times that of a request of HTTP.
    private static let longestRead: Int64 = 100_000

    /// Sends the output of `channel` with that of the others, or earlier if a handler runs the loop.
    ///
    /// - Returns: `false` if the loop has ended.
    func add(_ channel: LoopChannel) -> Bool {
        if !isSendPosted {
            guard let loop = channel.loopOfChannel.loop else { return false }
            isSendPosted = true
            loop.perform(inModes: .every) { [self] in
                isSendPosted = false
                send()
            }
        }
        channels.append(channel)
        return true
    }

    /// Called when a channel has been read and its handlers have returned.
    func channelWasRead(on loop: RunLoop?) {
        readCount += 1
        let isLast = loop?.hasReadyDescriptors != true
        guard isLast || isFresh || readCount == Self.size else { return }
        send()
        isFresh = isLast || takesLong(on: loop!)
        readCount = 0
    }

    /// Whether the channels took long that were read since output was sent before.
    private func takesLong(on loop: RunLoop) -> Bool {
        let begin = max(lastSent, loop.passTime)
        lastSent = loop.now
        return lastSent.nanoseconds - begin.nanoseconds > Int64(readCount) * Self.longestRead
    }

    func send() {
        guard !channels.isEmpty else { return }
        // Sending may call handlers, and these may run the loop.
        var sent: [LoopChannel] = []
        swap(&sent, &channels)
        for channel in sent { channel.sendDeferred() }
        sent.removeAll(keepingCapacity: true)
        if channels.isEmpty { swap(&sent, &channels) }
    }
}
#endif
