#if Adapters
@_spi(Ports) internal import RunLoopCore
internal import RunLoopKit

/// The channels whose flushed output waits until other channels that became ready with them have been read.
///
/// Output that wakes a sleeping process costs up to a tenth of the processor time of an exchange; output that follows
/// soon finds the process awake. Redis also sends the replies of a pass together. Here the first reply leaves at once,
/// and later ones in groups of four, so that receivers start early, and no output waits for the handlers of more than
/// three other channels. After slow handlers, the next reply again leaves at once.
// Used on the loop's thread only.
final class FlushGroup {
    // Unchecked as in `StreamChannel`.
    @exclusivity(unchecked) private var channels: [LoopChannel] = []
    /// True if the output of the next channel to be read leaves at once.
    private(set) var isFresh = true
    /// The number of channels that have been read since output was last sent.
    private var readCount = 0
    /// The time when `takesLong(on:)` last read the clock.
    private var lastSent = RunLoop.Instant.distantPast
    private var isSendPosted = false

    private static let size = 4
    /// The longest average time per channel, in nanoseconds, for which output waits: a few times as long as an HTTP
    /// request takes.
    private static let longestRead: Int64 = 100_000

    /// Adds a channel, whose output leaves with the group's, or earlier if a handler runs the loop.
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

    /// Notes that a channel has been read and its handlers have returned.
    func channelWasRead(on loop: RunLoop?) {
        readCount += 1
        let isLast = loop?.hasReadyDescriptors != true
        guard isLast || isFresh || readCount == Self.size else { return }
        send()
        isFresh = isLast || takesLong(on: loop!)
        readCount = 0
    }

    /// Returns whether the channels read since the last output were slow.
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
