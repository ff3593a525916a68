/// A timer of a run loop: it fires once, or again and again on a grid, while its loop runs in one of its modes.
///
/// A repeating timer keeps to the dates `fireDate + k × interval`. When the loop comes late, because it was busy or ran
/// in a mode that the timer is not in, the timer fires once for all the dates that have passed and then goes on with
/// the first date still to come (R115–R117); ``missedFires`` tells how many there were. It never fires early (R113).
///
/// The loop keeps the timer from the moment it is added until it is invalidated or removed from its last mode, and the
/// timer keeps its block or target until it is invalidated (R110, R140). A one-shot invalidates itself after its fire.
///
/// A timer belongs to the thread of its loop and is not `Sendable`. To stop one from another thread, hand that thread
/// the timer's ``remote``.
///
/// Source: Apple's pages on `Timer` and `CFRunLoopTimer`.
public final class Timer {
    /// The time between fires, at least 0.0001 s (R98); zero for a one-shot (R99).
    public var timeInterval: Duration { extras?.exactInterval ?? .nanoseconds(period) }

    /// Whether the timer fires again and again.
    public var repeats: Bool { period != 0 }

    /// Whether the timer can still fire. Permanently false once it has been invalidated (R136).
    public var isValid: Bool {
        block != nil && extras?.remote?.isInvalidated != true
    }

    /// How many dates of the grid passed without a fire of their own before the fire that is being called, or that was
    /// called last; those lost to the timer's own callback are among them. Zero for a one-shot.
    public private(set) var missedFires: Int {
        get { extras?.missedFires ?? 0 }
        set { if newValue != missedFires { withExtras { $0.missedFires = newValue } } }
    }

    // 104 bytes, which the allocator makes 112 of, and what few timers have in an object of its own: with its closure and
    // its entry in a heap a timer takes 160 bytes. What is needed to cancel or move a timer comes first, in one or two
    // lines of the cache. Not checked for exclusivity: only the loop's thread gets here, and no access is open while user
    // code is called.

    // Spelt out, for the short form would be set to `nil` first.
    @exclusivity(unchecked) private var block: Optional<(Timer) -> Void>
    /// Set while the timer is scheduled; the loop clears it before it goes.
    // A reference that does not count: one that does is two calls of the runtime at each use, of 32 in all when a timer
    // was added and cancelled.
    @exclusivity(unchecked) private var home: Unmanaged<RunLoop>?
    @exclusivity(unchecked) private var extras: Extras?
    /// For the loop's timer queue.
    @exclusivity(unchecked) var queueLink = TimerQueueLink()
    @exclusivity(unchecked) private var isFiring = false
    @exclusivity(unchecked) private var wasMoved = false
    /// The tolerance was set after the timer had been armed.
    @exclusivity(unchecked) private var hasNewSlack = false
    /// The date that is fired next, or is being fired.
    @exclusivity(unchecked) private var date: RunLoop.Instant
    /// In nanoseconds, rounded; 0 for a one-shot.
    private let period: Int64
    /// The date that was fired last; `distantPast` if there was none.
    @exclusivity(unchecked) private var lastFireDate = RunLoop.Instant.distantPast
    /// Where it was made.
    @exclusivity(unchecked) public package(set) var origin: RunLoop.Origin

    private struct Move {
        /// The place in the order that it took, and in which loop; none if the timer was in no loop.
        let place: (loop: UInt64, order: UInt64)?

        func order(in loop: RunLoop) -> UInt64? { place?.loop == loop.number ? place?.order : nil }
    }

    /// What few timers have.
    private final class Extras {
        var name: String?
        var userInfo: Any?
        var invalidationHandler: (() -> Void)?
        var remote: Remote?
        var slack = Duration.zero
        /// Dates that passed without a fire: until the last fire, and since then.
        var missedFires = 0
        var lostDates: Int64 = 0
        /// Of an interval that is not a whole number of nanoseconds, or too long for one.
        var exactInterval: Duration?
        var exactGrid: Cadence?
        /// A new fire date was set during the callback.
        var move = Move(place: nil)
        /// The place in the order of a timer that is scheduled in no mode for the moment.
        var keptOrder: (loop: UInt64, order: UInt64)?
    }

    /// A timer that fires first at `fireDate`; it fires once it has been added to a loop. (R97)
    ///
    /// - Parameters:
    ///   - fireDate: the first date, on the clock of the loop that the timer will be added to. A date that has passed
    ///     fires as soon as a mode of the timer runs, and keeps its phase.
    ///   - interval: the time between fires; used only if the timer repeats. Zero or less is taken as 0.0001 s (R98).
    ///   - repeats: whether the timer fires more than once.
    ///   - block: called on the loop's thread at every fire; kept until the timer is invalidated.
    ///   - file: for ``origin``, as `line`.
    public init(
        fire fireDate: RunLoop.Instant, interval: Duration, repeats: Bool, block: consuming @escaping (Timer) -> Void,
        file: StaticString = #fileID, line: UInt32 = #line
    ) {
        date = fireDate
        self.block = consume block
        origin = RunLoop.Origin(file: file, line: line)
        guard repeats else {
            period = 0
            return
        }
        let interval = interval > .zero ? interval : Timer.shortestInterval
        period = interval.saturatedNanoseconds
        guard .nanoseconds(period) != interval else { return }
        withExtras { extras in
            extras.exactInterval = interval
            extras.exactGrid = Cadence(anchor: fireDate, period: interval)
        }
    }

    package static let shortestInterval = Duration.microseconds(100)

    // MARK: Properties

    /// The date of the next fire; during the callback, the date that is being fired (R121); once invalid, the date of
    /// the last fire (R135).
    ///
    /// Setting it moves the next fire and begins a new grid there (R130), also from within the callback (R131). A date
    /// that has passed fires in the next pass. ``RunLoop/Instant/distantFuture`` parks the timer (R133). On an invalid
    /// timer nothing happens, and a one-shot's own callback cannot save it (R134, R123). O(log n).
    public var fireDate: RunLoop.Instant {
        get { isValid || lastFireDate == .distantPast ? date : lastFireDate }
        set {
            guard isValid else { return }
            if let home { return home._withUnsafeGuaranteedRef { move(to: newValue, in: $0) } }
            restart(at: newValue)
            if isFiring { setMove(Move(place: nil)) } else { renewKeptPlace() }
        }
    }

    @inline(__always)
    private func move(to date: RunLoop.Instant, in loop: RunLoop) {
        loop.checkThread()
        let before = deadline
        restart(at: date)
        let order = loop.timers.takeOrder()
        if isFiring {
            setMove(Move(place: (loop.number, order)))
        } else if deadline >= before && !hasNewSlack {
            loop.timers.putOff(TimerClient(self), order: order)
        } else {
            arm(in: loop, order: order)
        }
    }

    private func setMove(_ move: Move) {
        wasMoved = true
        withExtras { $0.move = move }
    }

    private var move: Move? { wasMoved ? extras?.move : nil }

    /// How much later than its date a fire may come, so that several timers can share one wake-up (R148).
    ///
    /// Zero unless set; negative values count as zero, and for a repeating timer at most half of the interval counts
    /// (R149). The timer fires with the first wake-up between its date and the end of its tolerance, whatever that is
    /// for; if none comes, it wakes the loop at the end (R150). The grid stays where it is, and on virtual time no fire
    /// moves. Takes effect when the timer is next armed.
    public var tolerance: Duration {
        get { extras?.slack ?? .zero }
        set {
            let slack = max(.zero, repeats ? min(newValue, timeInterval / 2) : newValue)
            guard slack != tolerance else { return }
            withExtras { $0.slack = slack }
            hasNewSlack = true
        }
    }

    /// What the timer was given to carry along; kept until the timer is invalidated (R104).
    public var userInfo: Any? { extras?.userInfo }

    /// A name for traces and reports.
    public var name: String? {
        get { extras?.name }
        set { withExtras { $0.name = newValue } }
    }

    /// Called once when the timer becomes invalid, before its block and target are let go: the counterpart of a GCD
    /// source's cancel handler.
    public var invalidationHandler: (() -> Void)? {
        get { extras?.invalidationHandler }
        set { withExtras { $0.invalidationHandler = isValid ? newValue : nil } }
    }

    private func withExtras(_ change: (Extras) -> Void) {
        if extras == nil { extras = Extras() }
        change(extras!)
    }

    func carry(_ userInfo: Any?) {
        if userInfo != nil { withExtras { $0.userInfo = userInfo } }
    }

    /// A handle with which any thread may stop the timer.
    public var remote: Remote {
        withExtras { extras in
            guard extras.remote == nil else { return }
            extras.remote = Remote(self, loop: loop?.remote)
        }
        return extras!.remote!
    }

    // MARK: Firing and invalidating

    /// Calls the block now, on the calling thread, whatever the modes (R143).
    ///
    /// A repeating timer's schedule and ``fireDate`` stay as they are (R144); a one-shot is invalidated afterwards
    /// (R145). Nothing happens on an invalid timer (R146), nor inside the timer's own callback.
    public func fire() {
        loop?.checkThread()
        guard isValid, !isFiring else { return }
        // While its block is on the stack the timer must not come due in a nested run: it is armed again afterwards.
        let before = loop
        let order = loop?.timers.order(of: TimerClient(self))
        loop?.timers.disarm(TimerClient(self))
        missedFires = 0
        if let before { callBlock(in: before, isManual: true) } else { firing { block?(self) } }
        guard isValid, repeats else { return invalidate() }
        guard let loop else { return }
        let kept = loop === before ? order : nil
        arm(in: loop, order: move?.order(in: loop) ?? kept ?? loop.timers.takeOrder())
    }

    func deadlineCame(in loop: RunLoop) -> Bool {
        guard isValid else {
            invalidate()
            return false
        }
        lastFireDate = date
        guard repeats else {
            callBlock(in: loop, isManual: false)
            invalidate()
            return true
        }
        let passed = countMissed(at: loop.recentTime())
        callBlock(in: loop, isManual: false)
        let now = loop.recentTime()
        guard isValid else {
            invalidate()
            return true
        }
        if !wasMoved { advance(past: now, after: passed) }
        // The callback may have moved the timer to another loop of this thread.
        guard let home else {
            keep(move?.order(in: loop) ?? loop.timers.takeOrder(), of: loop)
            return true
        }
        home._withUnsafeGuaranteedRef { arm(in: $0, order: move?.order(in: $0) ?? $0.timers.takeOrder()) }
        return true
    }

    private func callBlock(in loop: RunLoop, isManual: Bool) {
        firing {
            if loop.trace != nil { loop.emit(.fired(self, isManual: isManual)) }
            loop.calling(.timer, name, origin) { block?(self) }
        }
    }

    @inline(__always)
    private func firing(_ call: () -> Void) {
        isFiring = true
        wasMoved = false
        call()
        isFiring = false
    }

    /// Stops the timer for good: it leaves its loop, will not fire again, also not in a pass that has already begun
    /// (R136, R138), and lets its block, target and `userInfo` go, at the latest when a callback that is under way
    /// returns (R139).
    ///
    /// Harmless on an invalid timer. To be called on the thread of the timer's loop; elsewhere use ``remote``. O(1) on
    /// the average, O(log n) at worst.
    public func invalidate() {
        guard block != nil else { return }
        home?._withUnsafeGuaranteedRef { $0.checkThread() }
        let block = self.block.take()
        withdraw()
        guard let extras else { return }
        extras.remote?.markInvalidated()
        let handler = extras.invalidationHandler
        let userInfo = extras.userInfo
        extras.invalidationHandler = nil
        extras.userInfo = nil
        handler?()
        // Block, target and `userInfo` go only here, when everything is in order: their deinits may do anything.
        withExtendedLifetime((block, userInfo)) {}
    }

    private func withdraw() {
        guard let home else { return }
        self.home = nil
        extras?.remote?.loopChanged(to: nil)
        home._withUnsafeGuaranteedRef { $0.timers.unregister(TimerClient(self)) }
        TimerClient(self).release()
    }
}

// MARK: - In a loop

extension Timer {
    func loopEnded() -> Any? {
        home = nil
        extras?.remote?.loopChanged(to: nil)
        return nil
    }

    func describe(_ membership: Membership) -> RunLoop.Dump.Item {
        RunLoop.Dump.Item(
            kind: .timer, name: name, origin: origin, membership: membership, deadline: fireDate,
            detail: repeats ? "every \(timeInterval)" : nil)
    }

    private func keep(_ order: UInt64, of loop: RunLoop) {
        withExtras { $0.keptOrder = (loop.number, order) }
    }

    /// A timer that is in no mode for the moment takes a new place with its new date, too; away from its loop's thread
    /// it takes one when it is added again.
    private func renewKeptPlace() {
        guard let kept = extras?.keptOrder else { return }
        guard let home = RunLoop.installed, home.number == kept.loop else { return extras!.keptOrder = nil }
        keep(home.timers.takeOrder(), of: home)
    }

    private func arm(in loop: RunLoop, order: UInt64) {
        hasNewSlack = false
        loop.timers.arm(TimerClient(self), at: deadline, order: order)
    }

    private var loop: RunLoop? { home?.takeUnretainedValue() }

    /// When the loop is to wake for the date at the latest.
    var deadline: RunLoop.Instant { extras == nil ? date : endOfTolerance }

    private var endOfTolerance: RunLoop.Instant {
        tolerance > .zero && loop?.isVirtual != true ? date + tolerance : date
    }

    /// When it may fire if the loop is awake.
    var earliest: RunLoop.Instant { date }

    /// Whether the timer is in no loop, or in `other`.
    func canJoin(_ other: RunLoop) -> Bool { home == nil || isIn(other) }

    private func isIn(_ loop: RunLoop) -> Bool { home?.toOpaque() == Unmanaged.passUnretained(loop).toOpaque() }

    /// The modes of `loop` that the timer is in.
    func membership(in loop: RunLoop) -> Membership {
        isIn(loop) ? loop.timers.membership(of: TimerClient(self)) : .none
    }

    /// Joins a loop, changes its modes, or leaves the loop when no mode is left. The date and the place in the order
    /// stay.
    func setMembership(_ membership: Membership, in loop: RunLoop) {
        let client = TimerClient(self)
        if home != nil {
            if membership.isEmpty {
                keep(isFiring ? 0 : loop.timers.order(of: client), of: loop)
                withdraw()
            } else {
                loop.timers.move(client, to: membership)
            }
            return
        }
        guard !membership.isEmpty else { return }
        home = .passUnretained(loop)
        extras?.remote?.loopChanged(to: loop.remote)
        // During its callback it joins, but is armed only afterwards.
        guard !isFiring else {
            loop.timers.register(client, membership)
            return loop.timers.noteJoin(client, membership.modes)
        }
        var order: UInt64?
        if let kept = extras?.keptOrder, kept.loop == loop.number, kept.order != 0 {
            order = kept.order
            loop.timers.noteJoin(client, membership.modes)
        }
        hasNewSlack = false
        loop.timers.register(client, membership, at: deadline, order: order ?? loop.timers.takeOrder())
    }
}

// MARK: - The grid

extension Timer {
    /// Begins a new grid; dates of the old one are forgotten, not missed.
    private func restart(at date: RunLoop.Instant) {
        self.date = date
        guard let extras else { return }
        extras.lostDates = 0
        extras.exactGrid?.restart(at: date)
    }

    /// Notes how many dates passed without a fire of their own since the fire before.
    ///
    /// - Returns: how many dates after the one that is being fired have passed by now.
    private func countMissed(at now: RunLoop.Instant) -> Int64 {
        guard extras?.exactGrid == nil else {
            missedFires = extras!.exactGrid!.fire(at: now)
            return 0
        }
        let passed = datesPassed(at: now)
        missedFires = Int((extras?.lostDates ?? 0) + passed)
        return passed
    }

    /// Moves to the first date strictly after `now` (R115, R116). Of the dates on the way there, `counted` were counted.
    private func advance(past now: RunLoop.Instant, after counted: Int64) {
        guard extras?.exactGrid == nil else {
            extras!.exactGrid!.advance(past: now)
            date = extras!.exactGrid!.date
            return
        }
        let passed = datesPassed(at: now)
        let (distance, overflow) = period.multipliedReportingOverflow(by: passed + 1)
        date = RunLoop.Instant(
            nanoseconds: overflow
                ? Int64(clamping: Int128(date.nanoseconds) + Int128(period) * Int128(passed + 1))
                : date.nanoseconds.saturatingAdding(distance))
        if passed != counted || extras != nil { withExtras { $0.lostDates = passed - counted } }
    }

    private func datesPassed(at now: RunLoop.Instant) -> Int64 {
        let (elapsed, overflow) = now.nanoseconds.subtractingReportingOverflow(date.nanoseconds)
        guard !overflow else {
            return Int64(clamping: (Int128(now.nanoseconds) - Int128(date.nanoseconds)) / Int128(period))
        }
        return elapsed < period ? 0 : elapsed / period
    }
}
