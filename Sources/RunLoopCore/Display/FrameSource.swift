/// Frames that somebody else begins: a toolkit, a compositor, a camera. The display links of a source are called in its
/// frames, and not by a ``FrameClock``.
///
/// ```swift
/// let frames = FrameSource()
/// let link = DisplayLink(frames: frames) { link in draw(at: link.targetTimestamp) }
/// link.add(to: loop, forMode: .common)
/// // In the callback of the toolkit:
/// frames.frameBegan(at: timestamp, interval: .microseconds(16_667))
/// ```
///
/// A link is called while the frame is reported, if the loop runs in one of its modes. Frames in other modes are lost to it,
/// as are those that nobody reports: ``DisplayLink/droppedFrames`` counts both, by the time between two reports.
///
/// A source belongs to the thread of its links' loop, and is not `Sendable`. It keeps a link as long as the loop does.
public final class FrameSource {
    /// The time between frames, as it was reported last.
    public private(set) var interval: Duration

    /// The date of the frame that was reported last; ``RunLoop/Instant/distantPast`` before the first one.
    public private(set) var timestamp = RunLoop.Instant.distantPast

    /// Whether any link waits for a frame. Otherwise nobody need report them.
    public private(set) var isWanted = false

    /// Called when ``isWanted`` has changed, for example to have a toolkit begin or end its frames.
    public var wantedHandler: ((Bool) -> Void)?

    /// The number of the frame that was reported last.
    private(set) var frame: Int64 = 0
    private var followers: [any FrameFollower] = []

    /// A source without links.
    ///
    /// - Parameter interval: the time between frames until one is reported; a 60th of a second unless given.
    /// - Precondition: from 1 ms to 1 s.
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

    /// Reports that a frame begins, and calls the links that are due. On the thread of the links' loop; O(number of links).
    ///
    /// - Parameters:
    ///   - timestamp: the date of the frame, on the loop's clock. A frame that is not later than the one before is ignored.
    ///   - interval: the time to the next frame; the same as before unless given.
    /// - Precondition: the interval is from 1 ms to 1 s.
    public func frameBegan(at timestamp: RunLoop.Instant, interval: Duration? = nil) {
        if let interval {
            Self.check(interval)
            self.interval = interval
        }
        guard timestamp > self.timestamp else { return }
        if self.timestamp == .distantPast {
            frame = 1
        } else {
            frame += max(1, Int64(((timestamp - self.timestamp) / self.interval).rounded()))
        }
        self.timestamp = timestamp
        // The call of a link may take others out.
        for follower in followers where followers.contains(where: { $0 === follower }) { follower.frameCame() }
    }

    /// The date of a frame, as far as it can be told.
    func date(of frame: Int64) -> RunLoop.Instant {
        let count = Int(clamping: frame.subtractingReportingOverflow(self.frame).partialValue)
        return timestamp + interval * count
    }

    // MARK: Links

    func add(_ follower: any FrameFollower) {
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
        wantedHandler?(isWanted)
    }
}

/// A display link, as its source knows it.
protocol FrameFollower: AnyObject {
    var isPaused: Bool { get }
    func frameCame()
}

@available(*, unavailable, message: "a frame source belongs to the thread of its links' loop")
extension FrameSource: Sendable {}
