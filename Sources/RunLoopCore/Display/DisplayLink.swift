/// Calls back once per frame, or once every few frames, while its loop runs in one of its modes: `CADisplayLink` with a
/// software clock instead of a display.
///
/// ```swift
/// let link = DisplayLink { link in
///     draw(at: link.targetTimestamp)
/// }
/// link.add(to: loop, forMode: .common)
/// ```
///
/// A call belongs to a frame of the link's ``FrameClock``, and is never early. If it cannot be made before the next
/// frame begins, the frame is lost and the call waits for the next frame to begin. Lost frames are not made up;
/// ``droppedFrames`` counts them. A call that is late again after such a wait is made at once and belongs to the
/// current frame.
///
/// The loop keeps the link from the moment it is added until it is invalidated or leaves its last mode, and the link
/// keeps its block or target until it is invalidated. The end of its loop invalidates it. A link keeps its modes from
/// being empty, even while it is paused.
///
/// A link belongs to the thread of its loop and is not `Sendable`; other threads stop it through its ``remote``.
///
/// Source: Apple's page on `CADisplayLink`.
public final class DisplayLink: RunLoop.TimedItem, FrameFollower {
    private var block: ((DisplayLink) -> Void)?
    private(set) var schedule: FrameSchedule
    /// The date at which the source's frames count as stopped, as known when the link was armed.
    private var silenceEnd = RunLoop.Instant.distantFuture

    // MARK: Making one

    /// Creates a link that calls `block`, once it has been added to a loop.
    ///
    /// - Parameters:
    ///   - clock: the clock of the frames.
    ///   - block: called on the loop's thread with the link; kept until the link is invalidated.
    public convenience init(
        clock: FrameClock = FrameClock(), _ block: @escaping (DisplayLink) -> Void, file: StaticString = #fileID,
        line: UInt32 = #line
    ) {
        self.init(Frames(clock: clock), block, origin: RunLoop.Origin(file: file, line: line))
    }

    /// Creates a link that calls `block` in the frames of a source.
    ///
    /// - Parameters:
    ///   - source: the frames.
    ///   - block: called on the loop's thread with the link, while a frame is reported; kept until the link is
    ///     invalidated.
    ///   - file: the place for ``RunLoop/Item/origin``, with `line`.
    public convenience init(
        frames source: FrameSource, _ block: @escaping (DisplayLink) -> Void, file: StaticString = #fileID,
        line: UInt32 = #line
    ) {
        self.init(Frames(source: source), block, origin: RunLoop.Origin(file: file, line: line))
    }

    private init(_ frames: Frames, _ block: @escaping (DisplayLink) -> Void, origin: RunLoop.Origin) {
        schedule = FrameSchedule(frames)
        self.block = block
        timestamp = frames.source == nil ? frames.clock.start : .distantPast
        targetTimestamp = timestamp
        super.init(origin: origin)
        isRepeating = true
    }

    /// Creates a link that calls a method of `target`, which it keeps until it is invalidated.
    ///
    /// A target that keeps the link lives as long as the link is valid. Use `weakTarget` if the link must not keep its
    /// target.
    ///
    /// - Parameters:
    ///   - clock: the clock of the frames.
    ///   - target: the object whose method is called.
    ///   - selector: the method, for example `Player.step`, which receives the link.
    public convenience init<Target: AnyObject>(
        clock: FrameClock = FrameClock(), target: Target, selector: @escaping (Target) -> (DisplayLink) -> Void,
        file: StaticString = #fileID, line: UInt32 = #line
    ) {
        self.init(clock: clock, { selector(target)($0) }, file: file, line: line)
    }

    /// Creates a link that calls a method of `weakTarget` without keeping it. Once the target has been released, the
    /// link invalidates itself and calls nothing.
    ///
    /// - Parameters:
    ///   - clock: the clock of the frames.
    ///   - weakTarget: the object whose method is called as long as it lives.
    ///   - selector: the method, which receives the link.
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

    /// The date of the frame of the present call, or of the last one: a date of the clock's grid, not later than now,
    /// or the date reported to the frame source. Before the first call, the clock's start, or `distantPast`.
    public private(set) var timestamp: RunLoop.Instant

    /// The date of the next frame at the link's rate, to draw for. Like ``timestamp``, it does not change during a
    /// call, even if a property is set meanwhile.
    public private(set) var targetTimestamp: RunLoop.Instant

    /// The time between frames at the maximum rate, regardless of the link's own rate. The link's own period is
    /// `targetTimestamp - timestamp`.
    public var duration: Duration { schedule.frames.period }

    /// The number of frames per second of the link's clock or source.
    public var maximumFramesPerSecond: Int { schedule.frames.perSecond }

    /// The number of calls lost between the present call, or the last one, and the call before it. Long callbacks lose
    /// calls, this link's own included, and so do runs in other modes.
    ///
    /// Frames during a pause, or while the link was in no mode, are not counted; nor are calls lost just before them.
    public private(set) var droppedFrames = 0

    /// The sum of ``droppedFrames`` over all calls.
    public private(set) var totalDroppedFrames = 0

    // MARK: The rate

    /// The preferred number of calls per second; 0, the default, for one in every frame.
    ///
    /// The link is called in every n-th frame, with the n that comes closest; of two that are equally close, the one
    /// with more calls. This property, ``frameInterval`` and ``preferredFrameRateRange`` each return the value they
    /// were set to, and the last one set counts.
    ///
    /// A new rate counts from the last call: the next call is made n frames after it, or in the next frame if that time
    /// has passed. A call that is due already is still made.
    ///
    /// - Precondition: not negative.
    public var preferredFramesPerSecond = 0 {
        willSet { checkThread() }
        didSet {
            require(
                preferredFramesPerSecond >= 0,
                "preferredFramesPerSecond is a rate, or 0 for the highest, not \(preferredFramesPerSecond)")
            let rate = Double(preferredFramesPerSecond)
            setDivisor(FrameRateRange(minimum: rate, maximum: rate).divisor(for: maximumFramesPerSecond))
        }
    }

    /// The number of frames from one call to the next; 1, the default, for every frame. The property that was set last
    /// counts; see ``preferredFramesPerSecond``.
    ///
    /// - Precondition: at least 1.
    public var frameInterval = 1 {
        willSet { checkThread() }
        didSet {
            require(frameInterval >= 1, "frameInterval is at least 1, for every frame, not \(frameInterval)")
            setDivisor(Int64(frameInterval))
        }
    }

    /// The preferred range of rates; no preference by default. The property that was set last counts; see
    /// ``preferredFramesPerSecond``.
    public var preferredFrameRateRange = FrameRateRange.default {
        willSet { checkThread() }
        didSet { setDivisor(preferredFrameRateRange.divisor(for: maximumFramesPerSecond)) }
    }

    private func setDivisor(_ divisor: Int64) {
        guard divisor != schedule.divisor else { return }
        schedule.divisor = divisor
        guard let loop, !isCalling, !isPaused, schedule.adapt(at: loop.now) else { return }
        arm(in: loop)
    }

    // MARK: Pausing and invalidating

    /// A Boolean value that indicates whether the link is paused. A paused link stays in its modes. After a pause, its
    /// next call is in the first frame to begin. Frames during the pause are not made up and do not count as dropped.
    public var isPaused = false {
        willSet { checkThread() }
        didSet {
            guard isPaused != oldValue else { return }
            schedule.interrupt()
            schedule.frames.source?.linksChanged()
            guard let loop, !isCalling else { return }
            if isPaused { loop.timers.disarm(self) } else { begin(in: loop) }
        }
    }

    /// A handle by which any thread may send requests to a display link.
    public typealias Remote = RunLoop.ItemRemote<DisplayLink>

    /// A handle by which any thread may stop the link.
    public var remote: Remote { Remote(link: link) }

    // MARK: Modes

    /// Adds the link to `modes` of `loop`. Modes that contain it already have no effect.
    ///
    /// The first call is in the first frame after now. A link is in one loop at a time, in any number of its modes. An
    /// invalid link is ignored and reported to ``RunLoop/trace``. On the loop's thread, O(log n).
    ///
    /// - Precondition: the link is in no other loop.
    public func add(to loop: RunLoop, forMode modes: RunLoop.Modes) {
        loop.enrol(self, modes)
    }

    /// Removes the link from modes of `loop` without invalidating it, as `RunLoop.remove(_:forMode:)` does; it can be
    /// added again.
    public func remove(from loop: RunLoop, forMode modes: RunLoop.Modes) {
        loop.remove(self, forMode: modes)
    }

    // MARK: As an item

    override var kind: RunLoop.ItemKind { .displayLink }
    override var hasHandler: Bool { block != nil }
    override var dueDate: RunLoop.Instant? { isPaused || schedule.frames.source != nil ? nil : deadline }
    override var detail: String? { isPaused ? "paused" : nil }
    override var deadline: RunLoop.Instant { schedule.frames.source == nil ? schedule.deadline : silenceEnd }

    override func dropHandler(_ body: () -> Void) {
        guard let block else { return }
        self.block = nil
        schedule.frames.source?.remove(self)
        body()
        withExtendedLifetime(block) {}
    }

    override func setMembership(_ membership: Membership, in loop: RunLoop) {
        guard !membership.isEmpty else {
            schedule.frames.source?.remove(self)
            if home != nil { withdraw(from: loop) }
            return schedule.interrupt()
        }
        if home != nil { return loop.timers.move(self, to: membership) }
        homeChanged(to: loop)
        schedule.interrupt()
        loop.timers.register(self, membership)
        schedule.frames.source?.add(self)
        if !isPaused { begin(in: loop) }
    }

    func frameCame() {
        guard let loop, isValid, !isPaused, !isCalling, schedule.isDue else { return }
        checkThread()
        guard let mode = loop.modeOfThread, membership.contains(mode) else { return }
        withExtendedLifetime(self) { _ = callForFrame(in: loop) }
    }

    func watchSilence() {
        checkThread()
        if let loop, isValid, !isPaused { arm(in: loop) }
    }

    override func deadlineCame(in loop: RunLoop) -> Bool {
        guard isValid else {
            invalidate()
            return false
        }
        guard let source = schedule.frames.source else { return callForFrame(in: loop) }
        let wasCalled = source.silenceEnded(at: loop.recentTime()) { tell in
            loop.dispatch(callee) {
                tell()
                return true
            }
        }
        if !wasCalled { arm(in: loop) }
        return wasCalled
    }

    /// Calls the block for the frame that has begun, and waits for the next one.
    private func callForFrame(in loop: RunLoop) -> Bool {
        guard let (frame, lost) = schedule.take(at: loop.recentTime()) else {
            arm(in: loop)
            return false
        }
        assert(lost >= 0, "fewer than no frames were dropped")
        droppedFrames = lost
        totalDroppedFrames += lost
        timestamp = schedule.frames.date(of: frame)
        targetTimestamp = schedule.frames.date(of: frame.saturatingAdding(schedule.divisor))
        loop.emit(.called(kind, name: name, origin: origin, words))
        let wasCalled = dispatch(in: loop) { block?(self) }
        let end = loop.recentTime()
        guard isValid else {
            invalidate()
            return wasCalled
        }
        // The callback may have removed the link, and added it to another loop.
        guard let home = self.loop, !isPaused else { return true }
        schedule.advance(after: home === loop ? end : home.now)
        if schedule.frames.source == nil { arm(in: home) }
        return true
    }

    private var words: String { "frame \(name ?? "link") at \(timestamp) dropped \(droppedFrames)" }

    /// Has the link called in the first frame after now; during its own call, when that has ended.
    private func begin(in loop: RunLoop) {
        guard !isCalling else { return }
        schedule.begin(after: loop.now)
        arm(in: loop)
    }

    private func arm(in loop: RunLoop) {
        assert(isIn(loop), "a link is armed in a loop that it is not in")
        if let source = schedule.frames.source {
            silenceEnd = source.silenceEnd
            guard silenceEnd < .distantFuture else { return loop.timers.disarm(self) }
        }
        loop.timers.arm(self, at: deadline, order: loop.timers.takeOrder())
    }
}

@available(*, unavailable, message: "a display link belongs to its loop's thread; give other threads its remote")
extension DisplayLink: Sendable {}
