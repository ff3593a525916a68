/// The next frame of a display link, and the number of calls lost before it. Every operation is O(1): lost calls are
/// counted by division.
struct FrameSchedule {
    let frames: Frames

    /// The number of frames from one call to the next. A new value counts from the next call, or from ``adapt(at:)``.
    var divisor: Int64 = 1

    /// The frame called last; `nil` if the link has been paused or out of its loop since then.
    private var last: Int64?
    /// The frame whose turn it is. Further turns are every `step`-th frame after it.
    private var due: Int64 = 0
    private var step: Int64 = 1
    /// The frame to call: the due one, or a later one if that is lost.
    private var aim: Int64 = 0
    /// Set if the call was late, and was postponed to the next frame.
    private var isPutOff = false

    init(_ frames: Frames) {
        self.frames = frames
    }

    /// The date of the frame to call, which is not known for a source's frame.
    var deadline: RunLoop.Instant { frames.date(of: aim) }

    /// Forgets the turns so far. The schedule must be begun again before it is used.
    mutating func interrupt() {
        last = nil
    }

    /// Indicates whether a frame that a source reports is the frame to call, or a later one.
    var isDue: Bool { frames.frame(at: .distantPast) >= aim }

    /// Begins with the first frame after `now`.
    mutating func begin(after now: RunLoop.Instant) {
        interrupt()
        setTurn(frames.frame(after: now))
    }

    /// Takes the due frame at the deadline, `now`.
    ///
    /// - Returns: the frame to call and the number of turns lost before it; `nil` if the frame is lost and the call is
    ///   postponed to the next one. That happens once per call, so that a loop that is always late still calls its
    ///   links.
    mutating func take(at now: RunLoop.Instant) -> (frame: Int64, lost: Int)? {
        let frame = frames.frame(at: now)
        assert(frame >= aim || frames.source != nil, "a frame is shown before its time")
        assert(step > 0, "every frame is a turn at most")
        if frame > aim && !isPutOff && frames.source == nil {
            isPutOff = true
            aim = frames.frame(after: now)
            return nil
        }
        last = frame
        return (frame, frame > due ? Int((frame - due - 1) / step + 1) : 0)
    }

    /// Moves to the next turn after a call, or to the first frame after the end if that turn has passed.
    mutating func advance(after end: RunLoop.Instant) {
        guard let last else { return begin(after: end) }
        setTurn(last.saturatingAdding(divisor))
        aim = max(aim, frames.frame(after: end))
    }

    /// Applies the divisor between two calls: counts it from the last call, or from the next frame if that time has
    /// passed.
    ///
    /// - Returns: whether the deadline has changed. It has not if there was no call yet, or if the next is due already:
    ///   otherwise setting a rate again and again could postpone it for ever.
    mutating func adapt(at now: RunLoop.Instant) -> Bool {
        let coming = frames.frame(after: now)
        guard let last, due >= coming else { return false }
        setTurn(max(last.saturatingAdding(divisor), coming))
        return true
    }

    private mutating func setTurn(_ frame: Int64) {
        assert(divisor > 0, "every frame is a turn at most")
        (due, aim, step, isPutOff) = (frame, frame, divisor, false)
    }
}
