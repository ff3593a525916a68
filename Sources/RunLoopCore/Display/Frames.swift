/// The frames of a display link: those of a clock, or those that a source reports.
enum Frames {
    case clock(FrameClock)
    case source(FrameSource)

    var source: FrameSource? { if case .source(let source) = self { source } else { nil } }

    /// When a frame is.
    func date(of frame: Int64) -> RunLoop.Instant {
        switch self {
        case .clock(let clock): clock.date(of: frame)
        case .source(let source): source.date(of: frame)
        }
    }

    /// The latest frame whose date is not later than `now`.
    func frame(at now: RunLoop.Instant) -> Int64 {
        switch self {
        case .clock(let clock): clock.frame(at: now)
        case .source(let source): source.frame
        }
    }

    /// The first frame whose date is later than `now`.
    func frame(after now: RunLoop.Instant) -> Int64 { frame(at: now).saturatingAdding(1) }

    var period: Duration {
        switch self {
        case .clock(let clock): clock.framePeriod
        case .source(let source): source.interval
        }
    }

    var perSecond: Int {
        switch self {
        case .clock(let clock): clock.framesPerSecond
        case .source(let source): source.framesPerSecond
        }
    }
}
