/// Calls back once per frame, or once every few frames, while its loop runs in one of its modes: `CADisplayLink`, with
/// a software clock in place of the display.
///
/// ```swift
/// let link = DisplayLink { link in
///     draw(at: link.targetTimestamp)
/// }
/// link.add(to: loop, forMode: .common)
/// ```
///
/// A call belongs to a frame of the link's ``FrameClock``. It is never early; if it cannot be made before the next
/// frame begins, the frame is lost and the call waits for a frame to begin (R203): lost frames are not made up, but
/// counted in ``droppedFrames``. Only a call that has waited so and is late again is made at once, for the frame that
/// the loop is in then.
///
/// The loop keeps the link from the moment it is added until it is invalidated or removed from its last mode; the link
/// keeps its block or target until it is invalidated (R192). It keeps its modes from being empty, also when it is
/// paused (R204).
///
/// A link belongs to the thread of its loop and is not `Sendable`; other threads stop it with its ``remote``.
///
/// Source: Apple's page on `CADisplayLink`; R192–R205.
public final class DisplayLink {
    /// Where it was made.
    public let origin: RunLoop.Origin

    private var block: ((DisplayLink) -> Void)?
    private(set) var schedule: FrameSchedule

    /// Set while the link is in a mode of a loop; the loop clears it before it goes.
    unowned(unsafe) var loop: RunLoop?
    /// For the loop's timer queue.
    var queueLink = TimerQueueLink()
    private var isCalling = false
    private var remoteHandle: Remote?

    // MARK: Making one

    /// A link that calls `block`; it is called once it has been added to a loop (S5).
    ///
    /// - Parameters:
    ///   - clock: when the frames are.
    ///   - block: called on the loop's thread; kept until the link is invalidated.
    public init(
        clock: FrameClock = FrameClock(), _ block: @escaping (DisplayLink) -> Void, file: StaticString = #fileID,
        line: UInt32 = #line
    ) {
        schedule = FrameSchedule(clock: clock)
        self.block = block
        origin = RunLoop.Origin(file: file, line: line)
        timestamp = clock.start
        targetTimestamp = clock.start
    }

    /// A link that calls a method of `target`, which it keeps until it is invalidated (S5, R192).
    ///
    /// A target that keeps the link lives as long as the link is valid; use `weakTarget` where the target shall be free
    /// to go.
    ///
    /// - Parameters:
    ///   - clock: when the frames are.
    ///   - target: the object whose method is called.
    ///   - selector: the method, for example `Player.step`, which is given the link.
    public convenience init<Target: AnyObject>(
        clock: FrameClock = FrameClock(), target: Target, selector: @escaping (Target) -> (DisplayLink) -> Void,
        file: StaticString = #fileID, line: UInt32 = #line
    ) {
        self.init(clock: clock, { selector(target)($0) }, file: file, line: line)
    }

    /// A link that calls a method of `weakTarget` without keeping it; when the target is gone, the link invalidates
    /// itself instead of calling.
    ///
    /// - Parameters:
    ///   - clock: when the frames are.
    ///   - weakTarget: the object whose method is called as long as it lives.
    ///   - selector: the method, which is given the link.
    public convenience init<Target: AnyObject>(
        clock: FrameClock = FrameClock(), weakTarget: Target, selector: @escaping (Target) -> (DisplayLink) -> Void,
        file: StaticString = #fileID, line: UInt32 = #line
    ) {
        let block = { [weak weakTarget] (link: DisplayLink) in
            guard let weakTarget else { return link.invalidate() }
            selector(weakTarget)(link)
        }
        self.init(clock: clock, block, file: file, line: line)
    }

    // MARK: The frame

    /// The date of the frame that is being called, or that was called last: a date of the clock's grid, not later than
    /// now (R198). Before the first call, the clock's start.
    public private(set) var timestamp: RunLoop.Instant

    /// The date of the frame that comes next at the link's rate: what to draw for. Like ``timestamp`` it stays as it is
    /// during a call, whatever is set meanwhile (R198).
    public private(set) var targetTimestamp: RunLoop.Instant

    /// The time from frame to frame at the maximum rate, whatever the link's own rate (R199). The link's own period is
    /// `targetTimestamp - timestamp`.
    public var duration: Duration { schedule.clock.framePeriod }

    /// The frames of the clock in a second.
    public var maximumFramesPerSecond: Int { schedule.clock.framesPerSecond }

    /// How many calls were due since the call before, and were lost, when the call was made that is being made or was
    /// made last: to long callbacks, this link's own included, or to runs in other modes.
    ///
    /// Frames during a pause, or while the link was in no mode, are not counted, nor is what was lost just before.
    public private(set) var droppedFrames = 0

    /// The sum of ``droppedFrames`` over all calls.
    public private(set) var totalDroppedFrames = 0

    // MARK: The rate

    /// How many calls per second are wanted; 0, the default, for as many as there are frames (R200).
    ///
    /// The link is called in every n-th frame, with the n that comes nearest; of two that are equally near the one with
    /// more calls. What was set last counts, of this, ``frameInterval`` and ``preferredFrameRateRange``; each gives
    /// back what it was set to.
    ///
    /// A rate counts from the call that was made last: the next one is made n frames after it, or in the next frame if
    /// that time has passed. A call that is due already is still made.
    ///
    /// - Precondition: not negative.
    public var preferredFramesPerSecond = 0 {
        didSet {
            require(
                preferredFramesPerSecond >= 0,
                "preferredFramesPerSecond is a rate, or 0 for the highest, not \(preferredFramesPerSecond)")
            let rate = Double(preferredFramesPerSecond)
            setDivisor(FrameRateRange(minimum: rate, maximum: rate).divisor(for: maximumFramesPerSecond))
        }
    }

    /// The n with which the link is called in every n-th frame: 1, the default, for each (R201). What was set last
    /// counts; see ``preferredFramesPerSecond``.
    ///
    /// - Precondition: at least 1.
    public var frameInterval = 1 {
        didSet {
            require(frameInterval >= 1, "frameInterval is at least 1, for every frame, not \(frameInterval)")
            setDivisor(Int64(frameInterval))
        }
    }

    /// The rates that are wanted; by default no preference (R202). What was set last counts; see
    /// ``preferredFramesPerSecond``.
    public var preferredFrameRateRange = FrameRateRange.default {
        didSet { setDivisor(preferredFrameRateRange.divisor(for: maximumFramesPerSecond)) }
    }

    private func setDivisor(_ divisor: Int64) {
        loop?.checkThread()
        guard divisor != schedule.divisor else { return }
        schedule.divisor = divisor
        guard let loop, !isCalling, !isPaused, schedule.adapt(at: loop.now) else { return }
        arm(in: loop)
    }

    // MARK: Pausing and invalidating

    /// Whether the link rests; it stays in its modes (R197, R204). When it is let go on, its next call is in the frame
    /// after; the frames meanwhile are not made up, nor counted as dropped.
    public var isPaused = false {
        didSet {
            loop?.checkThread()
            guard isPaused != oldValue else { return }
            schedule.interrupt()
            guard let loop, !isCalling else { return }
            if isPaused { loop.timers.disarm(TimerClient(self)) } else { begin(in: loop) }
        }
    }

    /// Whether the link can still be called. Permanently false once it has been invalidated.
    public var isValid: Bool { block != nil && remoteHandle?.isInvalidated != true }

    /// A name for traces and reports.
    public var name: String?

    /// Called once when the link becomes invalid, before its block and target are let go.
    public var invalidationHandler: (() -> Void)? {
        didSet { if !isValid && invalidationHandler != nil { invalidationHandler = nil } }
    }

    /// A handle with which any thread may stop the link (R195).
    public var remote: Remote {
        if let remoteHandle { return remoteHandle }
        let handle = Remote(self, loop: loop?.remote)
        remoteHandle = handle
        return handle
    }

    /// Stops the link for good: it leaves all modes of its loop, is not called again, also not in a pass that has
    /// already begun, and lets its block and target go, at the latest when a call that is under way returns (R195).
    ///
    /// Harmless on an invalid link. To be called on the thread of the link's loop; elsewhere use ``remote``. O(1).
    public func invalidate() {
        guard let block else { return }
        loop?.checkThread()
        let handler = invalidationHandler
        invalidationHandler = nil
        self.block = nil
        withdraw()
        remoteHandle?.markInvalidated()
        handler?()
        // Block and target go only here, when everything is in order: their deinits may do anything.
        withExtendedLifetime(block) {}
    }

    func loopChanged(to loop: RunLoop?) {
        self.loop = loop
        schedule.interrupt()
        remoteHandle?.loopChanged(to: loop?.remote)
    }
}

// MARK: - Calling

extension DisplayLink {
    var deadline: RunLoop.Instant { schedule.deadline }

    func deadlineCame(in loop: RunLoop) -> Bool {
        guard isValid else {
            invalidate()
            return false
        }
        guard let (frame, lost) = schedule.take(at: loop.recentTime()) else {
            arm(in: loop)
            return false
        }
        droppedFrames = lost
        totalDroppedFrames += lost
        timestamp = schedule.clock.date(of: frame)
        targetTimestamp = schedule.target(of: frame)
        callBlock(in: loop)
        let end = loop.recentTime()
        guard isValid else {
            invalidate()
            return true
        }
        // It may have been taken out meanwhile, and added to another loop.
        guard let home = self.loop, !isPaused else { return true }
        schedule.advance(after: home === loop ? end : home.now)
        arm(in: home)
        return true
    }

    private func callBlock(in loop: RunLoop) {
        guard let block else { return }
        isCalling = true
        if loop.trace != nil { loop.emit(.frame(self)) }
        loop.calling(.displayLink, name, origin) { block(self) }
        isCalling = false
    }

    func loopEnded() -> Any? {
        loopChanged(to: nil)
        return nil
    }

    func describe(_ membership: Membership) -> RunLoop.Dump.Item {
        RunLoop.Dump.Item(
            kind: .displayLink, name: name, origin: origin, membership: membership,
            deadline: isPaused ? nil : deadline, detail: isPaused ? "paused" : nil)
    }

    /// Has the link called in the first frame after now; during its own call, once that has ended.
    func begin(in loop: RunLoop) {
        guard !isCalling else { return }
        schedule.begin(after: loop.now)
        arm(in: loop)
    }

    private func arm(in loop: RunLoop) {
        loop.timers.arm(TimerClient(self), at: schedule.deadline, order: loop.timers.takeOrder())
    }
}
