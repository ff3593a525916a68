/// Frames that another component begins: a toolkit, a compositor, a camera. The display links of a source are called in
/// its frames, and not by a ``FrameClock``.
///
/// ```swift
/// let frames = FrameSource()
/// let link = DisplayLink(frames: frames) { link in draw(at: link.targetTimestamp) }
/// link.add(to: loop, forMode: .common)
/// // In the callback of the toolkit:
/// frames.frameBegan(at: timestamp, interval: .microseconds(16_667))
/// ```
///
/// A link is called while the frame is reported, if the loop runs in one of its modes, or if its host waits in one of
/// them; see ``RunLoop/Guest``. Frames in other modes, and frames that are not reported, are lost to it:
/// ``DisplayLink/droppedFrames`` counts both, by the time between two reports. Frames that no link wanted are not
/// counted.
///
/// A display may stop its frames, for example for a hidden window. Then no link is called, and ``stoppedHandler`` is.
///
/// A source belongs to the thread of its links' loop, and is not `Sendable`. It keeps a link as long as the loop does.
public final class FrameSource {
    /// The time between frames, as last reported.
    public private(set) var interval: Duration

    /// The date of the last reported frame; ``RunLoop/Instant/distantPast`` before the first one.
    public private(set) var timestamp = RunLoop.Instant.distantPast

    /// A Boolean value that indicates whether any link waits for a frame. Otherwise frames need not be reported.
    public private(set) var isWanted = false

    /// A closure to call when ``isWanted`` has changed, for example to have a toolkit begin or end its frames.
    public var wantedHandler: ((FrameSource) -> Void)?

    /// A Boolean value that indicates whether frames are wanted and none has been reported for ``timeout``; always
    /// `false` without a ``stoppedHandler``.
    public private(set) var hasStopped = false

    /// The time without a frame after which frames count as stopped. The default is a second.
    public var timeout = Duration.seconds(1) { didSet { watchSilence() } }

    /// A closure to call when ``hasStopped`` has changed: when frames have stopped, and when they come again or are no
    /// longer wanted.
    ///
    /// The source calls it on the links' thread while the loop runs in a mode of a link that is not paused. In other
    /// modes, and while the loop itself is late, the silence lasts longer. While frames come it costs a wake-up for
    /// each ``timeout``.
    public var stoppedHandler: ((FrameSource) -> Void)? { didSet { watchSilence() } }

    /// The time since which no frame has come, or none was wanted.
    private var quietSince = RunLoop.Instant.distantPast
    /// Set if frames have been wanted since the last one.
    private var isCounting = false

    /// The number of the last reported frame.
    private(set) var frame: Int64 = 0
    private var followers: [any FrameFollower] = []

    /// Creates a source without links.
    ///
    /// - Parameter interval: the time between frames until one is reported. The default is a 60th of a second.
    /// - Precondition: the interval is from 1 ms to 1 s.
    public init(interval: Duration = .nanoseconds(16_666_667)) {
        Self.check(interval)
        self.interval = interval
    }

    private static func check(_ interval: Duration) {
        require(
            (.milliseconds(1)...(.seconds(1))).contains(interval),
            "the time between two frames is from 1 ms to 1 s, not \(interval)")
    }

    var framesPerSecond: Int { max(1, Int((.seconds(1) / interval).rounded())) }

    /// Reports that a frame begins, and calls the links that are due. On the thread of the links' loop; O(number of
    /// links).
    ///
    /// - Parameters:
    ///   - timestamp: the date of the frame, on the loop's clock. A frame that is not later than the previous one is
    ///     ignored. A date that lies ahead by more than an interval counts as now, and is reported to
    ///     ``RunLoop/trace``.
    ///   - interval: the time to the next frame; `nil` if it has not changed.
    /// - Precondition: the interval is from 1 ms to 1 s.
    public func frameBegan(at timestamp: RunLoop.Instant, interval: Duration? = nil) {
        if let interval {
            Self.check(interval)
            self.interval = interval
        }
        guard let loop = followers.first?.loop ?? RunLoop.installed else { return }
        let now = loop.now
        let isAhead = timestamp > now + self.interval
        if isAhead { tellAhead(timestamp, at: now, in: loop) }
        let timestamp = isAhead ? now : timestamp
        guard timestamp > self.timestamp else { return }
        frame += isCounting ? max(1, Int64(((timestamp - self.timestamp) / self.interval).rounded())) : 1
        assert(
            timestamp > self.timestamp && timestamp <= now + self.interval,
            "a frame began before the last one, or is far ahead")
        isCounting = true
        self.timestamp = timestamp
        quietSince = now
        setStopped(false)
        // The call of a link may remove others.
        for follower in followers where followers.contains(where: { $0 === follower }) { follower.frameCame() }
    }

    private func tellAhead(_ timestamp: RunLoop.Instant, at now: RunLoop.Instant, in loop: RunLoop) {
        loop.emit(
            .ignored("a frame was reported for \(timestamp), which is in the future; it counts for \(now)"))
    }

    /// Returns the date of a frame, as far as it is known.
    func date(of frame: Int64) -> RunLoop.Instant {
        let count = Int(clamping: frame.subtractingReportingOverflow(self.frame).partialValue)
        return timestamp + interval * count
    }

    // MARK: Links

    func add(_ follower: any FrameFollower) {
        assert(!followers.contains { $0 === follower }, "a link follows its frames twice")
        followers.append(follower)
        linksChanged()
    }

    func remove(_ follower: any FrameFollower) {
        followers.removeAll { $0 === follower }
        linksChanged()
    }

    func linksChanged() {
        let isWanted = followers.contains { !$0.isPaused }
        guard isWanted != self.isWanted else { return }
        self.isWanted = isWanted
        if isWanted {
            isCounting = false
            quietSince = followers.lazy.compactMap(\.loop).first!.now
        }
        setStopped(false)
        wantedHandler?(self)
    }

    // MARK: Silence

    /// The date at which frames count as stopped if none comes before; `distantFuture` if ``stoppedHandler`` is not to
    /// be called.
    var silenceEnd: RunLoop.Instant {
        isWanted && !hasStopped && stoppedHandler != nil ? quietSince + timeout : .distantFuture
    }

    /// Handles the end of the silence for a link, on whose behalf `tell` calls.
    ///
    /// - Returns: whether the handler was called. If not, the link waits for the new end.
    func silenceEnded(at now: RunLoop.Instant, tell: (() -> Void) -> Bool) -> Bool {
        guard now >= silenceEnd else { return false }
        // A late loop may not have polled the component that reports the frames.
        guard now <= silenceEnd + interval else {
            quietSince = now + interval - timeout
            return false
        }
        return tell { setStopped(true) }
    }

    private func setStopped(_ hasStopped: Bool) {
        guard hasStopped != self.hasStopped else { return }
        self.hasStopped = hasStopped
        watchSilence()
        stoppedHandler?(self)
    }

    private func watchSilence() {
        for follower in followers { follower.watchSilence() }
    }
}

/// A display link, in the view of its source.
protocol FrameFollower: AnyObject {
    var isPaused: Bool { get }
    var loop: RunLoop? { get }
    func frameCame()
    /// Waits for the end of the silence.
    func watchSilence()
}

@available(*, unavailable, message: "a frame source belongs to the thread of its links' loop")
extension FrameSource: Sendable {}
