/// The frames of a display link: a clock's, or the frames that a source reports instead.
struct Frames {
    var clock = FrameClock()
    var source: FrameSource?

    func date(of frame: Int64) -> RunLoop.Instant { source?.date(of: frame) ?? clock.date(of: frame) }

    func frame(at now: RunLoop.Instant) -> Int64 { source?.frame ?? clock.frame(at: now) }

    func frame(after now: RunLoop.Instant) -> Int64 { frame(at: now).saturatingAdding(1) }

    var period: Duration { source?.interval ?? clock.framePeriod }
    var perSecond: Int { source?.framesPerSecond ?? clock.framesPerSecond }
}
