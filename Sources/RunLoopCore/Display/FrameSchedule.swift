/// Which frame a display link is called for next, and how many calls are lost on the way there.
///
/// Every operation is O(1): what is lost is counted by division.
struct FrameSchedule {
    let clock: FrameClock

    /// Every n-th frame is to be called. Setting it counts from the next call on, or from ``adapt(at:)``.
    var divisor: Int64 = 1

    /// The frame called last; none if the link has been paused or out of its loop since.
    private var last: Int64?
    /// The frame whose turn it is, and the turns after it are every `step`-th one.
    private var due: Int64 = 0
    private var step: Int64 = 1
    /// The frame that is aimed at: the due one, or a later one if that is lost.
    private var aim: Int64 = 0
    /// The call was late, and has been put off to the next frame.
    private var isPutOff = false

    init(clock: FrameClock) {
        self.clock = clock
    }

    /// The date of the frame that is aimed at.
    var deadline: RunLoop.Instant { clock.date(of: aim) }

    /// The turns so far are forgotten; the schedule is begun anew before it is used.
    mutating func interrupt() {
        last = nil
    }

    /// Begins with the first frame after `now` (R197, R205).
    mutating func begin(after now: RunLoop.Instant) {
        interrupt()
        setTurn(clock.frame(after: now))
    }

    /// The deadline has come, and it is `now`.
    ///
    /// - Returns: the frame to call and how many turns were lost before it; `nil` if the frame is lost and the call is
    ///   put off to the next one (R203). That happens once for each call, so that a loop that is always late still
    ///   calls its links.
    mutating func take(at now: RunLoop.Instant) -> (frame: Int64, lost: Int)? {
        let frame = clock.frame(at: now)
        if frame > aim && !isPutOff {
            isPutOff = true
            aim = clock.frame(after: now)
            return nil
        }
        last = frame
        return (frame, frame > due ? Int((frame - due - 1) / step + 1) : 0)
    }

    /// The date of the turn after a frame that is called.
    func target(of frame: Int64) -> RunLoop.Instant {
        clock.date(of: frame.saturatingAdding(divisor))
    }

    /// The call has ended: goes on with the next turn, or, if that has passed, with the first frame after the end.
    mutating func advance(after end: RunLoop.Instant) {
        guard let last else { return begin(after: end) }
        setTurn(last.saturatingAdding(divisor))
        aim = max(aim, clock.frame(after: end))
    }

    /// Takes up the divisor between two calls: counts it from the call before, or from the next frame if that has
    /// passed.
    ///
    /// - Returns: whether the deadline has changed. It stays if there was no call before, or if the next is due
    ///   already: else a rate that is set again and again could put it off for ever.
    mutating func adapt(at now: RunLoop.Instant) -> Bool {
        let coming = clock.frame(after: now)
        guard let last, due >= coming else { return false }
        setTurn(max(last.saturatingAdding(divisor), coming))
        return true
    }

    private mutating func setTurn(_ frame: Int64) {
        (due, aim, step, isPutOff) = (frame, frame, divisor, false)
    }
}
