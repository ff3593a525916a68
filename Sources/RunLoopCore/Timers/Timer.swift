/// A timer of a run loop: it fires once, or again and again on a grid, while its loop runs in one of its modes.
///
/// A repeating timer keeps to the dates `fireDate + k × interval`. If the loop comes late, because it was busy or ran
/// in another mode, the timer fires once for all dates that have passed, and next at the first date still to come;
/// ``missedFires`` counts the dates missed. A timer never fires early.
///
/// The loop keeps the timer from the moment it is added until it is invalidated or leaves its last mode, and the timer
/// keeps its block or target until it is invalidated. A one-shot invalidates itself after its fire, and the end of its
/// loop invalidates every timer in it.
///
/// A timer belongs to the thread of its loop and is not `Sendable`. To stop or move it from another thread, give that
/// thread the timer's ``remote``.
///
/// Source: Apple's pages on `Timer` and `CFRunLoopTimer`.
public final class Timer: RunLoop.TimedItem {
    /// The time between fires, at least a nanosecond; zero for a one-shot.
    public var timeInterval: Duration { own?.exactInterval ?? .nanoseconds(grid.period) }

    /// A Boolean value that indicates whether the timer fires more than once.
    public var repeats: Bool { grid.period != 0 }

    /// The number of dates of the grid missed before the present fire, or before the last one. This includes dates that
    /// passed during the timer's own callback. Zero for a one-shot.
    public private(set) var missedFires: Int {
        get { own?.missedFires ?? 0 }
        set { if newValue != missedFires { madeOwn.missedFires = newValue } }
    }

    // 104 bytes, for which the allocator takes 112; properties that few timers have are in an object of their own. With
    // its closure and its entry in a heap a timer takes 160 bytes. The fields needed to cancel or move a timer come
    // first, in one or two lines of the cache.

    // In a structure, because a function passed to generic code is wrapped in an allocation. Spelt out, because the
    // short form would first be set to `nil`. Unchecked as in `Item`.
    @exclusivity(unchecked) private var handler: Optional<Handler>
    /// The date that is fired next, or is being fired, and the dates after it.
    @exclusivity(unchecked) private var grid: Grid
    /// The date that was fired last; `distantPast` if there was none.
    @exclusivity(unchecked) private var lastFireDate = RunLoop.Instant.distantPast

    private struct Handler {
        let block: (Timer) -> Void
    }

    private final class Own: Extras {
        var userInfo: Any?
        var slack = Duration.zero
        /// The interval, if it is not a whole number of nanoseconds or does not fit into 64 bits of them.
        var exactInterval: Duration?
        var fraction: Grid.Fraction?
        /// The numbers of missed dates: up to the last fire, and since then.
        var missedFires = 0
        var lostDates: Int64 = 0
        /// The change of the timer since it was armed.
        var change = Change.none
        /// Set if a one-shot was armed again in its callback.
        var firesAgain = false
        /// The timer's place in the order while it is scheduled in no mode.
        var keptPlace: Place?
    }

    /// A place in the order of a loop.
    private struct Place {
        let loop: UInt64
        let order: UInt64

        func order(in loop: RunLoop?) -> UInt64? { self.loop == loop?.number ? order : nil }
    }

    private enum Change {
        case none
        /// The tolerance was set after the timer was armed.
        case newSlack
        /// A new date was set during the callback. If the timer was in a loop, this is the place that it took.
        case moved(Place?)
    }

    /// The value of ``isValid``, without a check of the item's kind.
    @inline(__always)
    private var canFire: Bool { handler != nil && extras?.link?.isInvalidated != true }

    override func makeExtras() -> Extras { Own() }

    @inline(__always)
    private var own: Own? { extras.map { unsafeDowncast($0, to: Own.self) } }

    private var madeOwn: Own { unsafeDowncast(madeExtras, to: Own.self) }

    /// Creates a timer that fires first at `fireDate`, once it has been added to a loop.
    ///
    /// - Parameters:
    ///   - fireDate: the first date, on the clock of the timer's loop. If the date has passed, the timer fires as soon
    ///     as one of its modes runs, and keeps its phase.
    ///   - interval: the time between fires; used only if the timer repeats. Zero or less counts as 0.0001 s, and less
    ///     than a nanosecond as a nanosecond.
    ///   - repeats: whether the timer fires more than once.
    ///   - block: called on the loop's thread at every fire; kept until the timer is invalidated.
    ///   - file: the place for ``RunLoop/Item/origin``, with `line`.
    public convenience init(
        fire fireDate: RunLoop.Instant, interval: Duration, repeats: Bool, block: consuming @escaping (Timer) -> Void,
        file: StaticString = #fileID, line: UInt32 = #line
    ) {
        self.init(
            fire: fireDate, interval: interval, repeats: repeats, origin: RunLoop.Origin(file: file, line: line),
            block: block)
    }

    /// Creates a timer on behalf of other code, with that code's place; see
    /// ``init(fire:interval:repeats:block:file:line:)``.
    public init(
        fire fireDate: RunLoop.Instant, interval: Duration, repeats: Bool, origin: RunLoop.Origin,
        block: consuming @escaping (Timer) -> Void
    ) {
        handler = Handler(block: consume block)
        guard repeats else {
            grid = Grid(date: fireDate)
            super.init(origin: origin)
            return
        }
        let interval = interval > .zero ? interval : Timer.usualInterval
        let fraction: Grid.Fraction?
        (grid, fraction) = Grid.repeating(fireDate, interval)
        super.init(origin: origin)
        isRepeating = true
        guard .nanoseconds(grid.period) != interval, interval > Grid.shortest else { return }
        let own = madeOwn
        own.exactInterval = interval
        own.fraction = fraction
    }

    /// Creates a timer that fires once, at `date`, if it has been added to a loop.
    public convenience init(
        at date: RunLoop.Instant, block: consuming @escaping (Timer) -> Void, file: StaticString = #fileID,
        line: UInt32 = #line
    ) {
        self.init(at: date, origin: RunLoop.Origin(file: file, line: line), block: block)
    }

    /// Creates a timer that fires once, on behalf of other code, with that code's place.
    public convenience init(
        at date: RunLoop.Instant, origin: RunLoop.Origin, block: consuming @escaping (Timer) -> Void
    ) {
        self.init(fire: date, interval: .zero, repeats: false, origin: origin, block: block)
    }

    /// The replacement for an interval of zero or less.
    static let usualInterval = Duration.microseconds(100)

    // MARK: Properties

    /// The date of the next fire. During the callback, the date that is being fired; once the timer is invalid, the
    /// date of the last fire.
    ///
    /// Setting it moves the next fire and begins a new grid there, also within the callback. A date that has passed
    /// fires in the next pass. ``RunLoop/Instant/distantFuture`` parks the timer. Setting has no effect on an invalid
    /// timer, and does not keep a one-shot from becoming invalid after its callback; see ``rearm(at:)``. On the thread
    /// of its loop, O(log n).
    public var fireDate: RunLoop.Instant {
        get { canFire || lastFireDate == .distantPast ? grid.date : lastFireDate }
        set {
            guard canFire else { return tellOfDateIgnored() }
            if let home { return home.with { move(to: newValue, in: $0) } }
            restart(at: newValue)
            if isCalling { madeOwn.change = .moved(nil) } else { renewKeptPlace() }
        }
    }

    // Not inlined: the text took seven instructions of each new date.
    @inline(never)
    private func tellOfDateIgnored() {
        tellIgnored("was given a new date, but it is invalid")
    }

    @inline(__always)
    private func move(to date: RunLoop.Instant, in loop: RunLoop) {
        loop.checkThread(of: self)
        let before = deadline
        restart(at: date)
        let order = loop.timers.takeOrder()
        if isCalling {
            madeOwn.change = .moved(Place(loop: loop.number, order: order))
        } else if deadline >= before && !hasNewSlack {
            loop.timers.postpone(self, order: order)
        } else {
            arm(in: loop, order: order)
        }
        if loop.isWatched(.effects) { tellOfArming(in: loop) }
    }

    @inline(never)
    fileprivate func tellOfArming(in loop: RunLoop) {
        if !repeats, isIn(loop) { loop.watchedCause(of: callee) }
    }

    private var hasNewSlack: Bool { if case .newSlack? = own?.change { true } else { false } }

    /// Indicates whether a new date was set during the present callback, or during the last one.
    private var wasMoved: Bool { if case .moved? = own?.change { true } else { false } }

    /// Returns the place in the order of `loop` that the timer took with a new date.
    private func movedOrder(in loop: RunLoop?) -> UInt64? {
        if case .moved(let place)? = own?.change { place?.order(in: loop) } else { nil }
    }

    /// The time by which a fire may come later than its date, so that several timers can share one wake-up.
    ///
    /// The default is zero. Negative values count as zero, and a repeating timer uses at most half of its interval. At
    /// the end of its tolerance the timer wakes the loop. Before that, from its date on, it may fire with any other
    /// wake-up of the loop, as soon as it is the next timer that would have to wake it. The grid does not move, and on
    /// virtual time no fire does. A new tolerance takes effect when the timer is next armed. On the thread of its loop.
    public var tolerance: Duration {
        get { own?.slack ?? .zero }
        set {
            checkThread()
            let slack = max(.zero, repeats ? min(newValue, timeInterval / 2) : newValue)
            guard slack != tolerance else { return }
            let own = madeOwn
            own.slack = slack
            if case .none = own.change { own.change = .newSlack }
        }
    }

    /// The user's value that the timer carries; kept until the timer is invalidated.
    public var userInfo: Any? { own?.userInfo }

    func carry(_ userInfo: Any?) {
        if userInfo != nil { madeOwn.userInfo = userInfo }
    }

    /// A handle by which any thread may send requests to a timer.
    public typealias Remote = RunLoop.ItemRemote<Timer>

    /// A handle by which any thread may stop or move the timer.
    public var remote: Remote { Remote(link: link) }

    // MARK: Firing and invalidating

    /// Calls the block now, on the calling thread, in any mode.
    ///
    /// The schedule and the ``fireDate`` of a repeating timer do not change; a one-shot is invalidated afterwards. A
    /// call on an invalid timer, or within the timer's own callback, is ignored and reported to ``RunLoop/trace``. On
    /// the thread of its loop.
    public func fire() {
        checkThread()
        guard canFire else { return tellIgnored("was asked to fire, but it is invalid") }
        guard !isCalling else { return tellIgnored("was asked to fire in its own callback") }
        // While its block is on the stack the timer must not come due in a nested run. It is armed again afterwards.
        let before = loop
        let place = order
        before?.timers.disarm(self)
        missedFires = 0
        if let before { callBlock(in: before, isManual: true) } else { callBlock() }
        guard canFire, repeats || own?.firesAgain == true else { return invalidate() }
        guard let loop else { return }
        let kept = loop === before ? place : nil
        arm(in: loop, order: movedOrder(in: loop) ?? kept ?? loop.timers.takeOrder())
    }

    /// Arms a one-shot again, also within its own callback: it fires once more, at `date`. A repeating timer moves as
    /// if ``fireDate`` were set. Does nothing on an invalid timer, which a one-shot is once its callback has returned.
    /// On the thread of its loop, O(log n).
    public func rearm(at date: RunLoop.Instant) {
        fireDate = date
        if isCalling { madeOwn.firesAgain = true }
    }

    override func deadlineCame(in loop: RunLoop) -> Bool {
        guard canFire else {
            invalidate()
            return false
        }
        lastFireDate = grid.date
        let passed = repeats ? countMissed(at: loop.recentTime()) : 0
        let wasCalled = callBlock(in: loop, isManual: false)
        guard canFire, repeats || own?.firesAgain == true else {
            invalidate()
            return wasCalled
        }
        let now = loop.recentTime()
        if !wasMoved { advance(past: now, after: passed) }
        // The callback may have moved the timer to another loop of this thread.
        guard let home else {
            keepPlace(movedOrder(in: loop) ?? loop.timers.takeOrder(), of: loop)
            return true
        }
        home.with { arm(in: $0, order: movedOrder(in: $0) ?? $0.timers.takeOrder()) }
        return true
    }

    private func callBlock() {
        if let own { (own.change, own.firesAgain) = (.none, false) }
        _ = call(in: nil) { handler?.block(self) }
    }

    // Inlined, as are the two functions that follow the grid: 53 instructions of a fire.
    @discardableResult
    @inline(__always)
    private func callBlock(in loop: RunLoop, isManual: Bool) -> Bool {
        if let own { (own.change, own.firesAgain) = (.none, false) }
        loop.emit(.called(kind, name: name, origin: origin, words(isManual: isManual)))
        return dispatch(in: loop) { handler?.block(self) }
    }

    private func words(isManual: Bool) -> String {
        "fire \(name ?? "timer") due \(fireDate) missed \(missedFires)" + (isManual ? " by hand" : "")
    }

    override func dropHandler(_ body: () -> Void) {
        guard let handler else { return }
        self.handler = nil
        guard let own else {
            body()
            return withExtendedLifetime(handler) {}
        }
        let userInfo = own.userInfo
        own.userInfo = nil
        body()
        withExtendedLifetime((handler, userInfo)) {}
    }

    // MARK: As an item

    override var kind: RunLoop.ItemKind { .timer }
    @inline(__always) override var hasHandler: Bool { handler != nil }
    override var dueDate: RunLoop.Instant? { fireDate }
    // A repeating timer fires because time passes. For a one-shot its address is as good as a number: no other timer
    // has it meanwhile.
    override var callNumber: UInt64 { repeats ? 0 : UInt64(UInt(bitPattern: ObjectIdentifier(self))) }
    override var detail: String? { repeats ? "every \(timeInterval)" : nil }

    override var deadline: RunLoop.Instant { extras == nil ? grid.date : endOfTolerance }
    override var earliest: RunLoop.Instant { grid.date }

    private var endOfTolerance: RunLoop.Instant {
        tolerance > .zero && loop?.isVirtual != true ? grid.date + tolerance : grid.date
    }

    /// Changes the timer's modes. Its date and its place in the order stay.
    override func setMembership(_ membership: Membership, in loop: RunLoop) {
        if home != nil {
            guard membership.isEmpty else { return loop.timers.move(self, to: membership) }
            if isCalling { madeOwn.keptPlace = nil } else { keepPlace(order, of: loop) }
            return withdraw(from: loop)
        }
        guard !membership.isEmpty else { return }
        homeChanged(to: loop)
        // During its callback the timer only joins; it is armed afterwards.
        guard !isCalling else {
            loop.timers.register(self, membership)
            return loop.timers.noteJoin(self, membership.modes)
        }
        let kept = own?.keptPlace?.order(in: loop)
        if kept != nil { loop.timers.noteJoin(self, membership.modes) }
        own?.change = .none
        loop.timers.register(self, membership, at: deadline, order: kept ?? loop.timers.takeOrder())
    }

    private func arm(in loop: RunLoop, order: UInt64) {
        assert(isIn(loop) && !isCalling, "a timer is armed in its callback, or in another loop")
        own?.change = .none
        loop.timers.arm(self, at: deadline, order: order)
    }

    private func keepPlace(_ order: UInt64, of loop: RunLoop) {
        madeOwn.keptPlace = Place(loop: loop.number, order: order)
    }

    /// Takes a new place for the new date of a timer that is in no mode for now. Away from its loop's thread the timer
    /// takes one when it is added again.
    private func renewKeptPlace() {
        guard let own, let kept = own.keptPlace else { return }
        guard let loop = RunLoop.installed, loop.number == kept.loop else { return own.keptPlace = nil }
        keepPlace(loop.timers.takeOrder(), of: loop)
    }

    // MARK: The grid

    /// Begins a new grid. Dates of the old one are forgotten and do not count as missed.
    private func restart(at date: RunLoop.Instant) {
        grid.date = date
        guard let own else { return }
        own.lostDates = 0
        own.fraction?.rest = 0
    }

    /// Counts the dates missed since the last fire, and returns the number of dates after the current one that have
    /// passed.
    @inline(__always)
    private func countMissed(at now: RunLoop.Instant) -> Int64 {
        let passed = grid.datesPassed(at: now, own?.fraction)
        assert(passed >= 0, "fewer than no dates were missed")
        missedFires = Int((own?.lostDates ?? 0).saturatingAdding(passed))
        return passed
    }

    /// Moves to the first date strictly after `now`. Of the dates on the way, `counted` were counted already.
    @inline(__always)
    private func advance(past now: RunLoop.Instant, after counted: Int64) {
        var fraction = own?.fraction
        let passed = grid.datesPassed(at: now, fraction)
        grid.advance(by: passed.saturatingAdding(1), &fraction)
        assert(grid.date > now || grid.date == .distantFuture, "the next date of a timer has passed")
        assert(passed >= counted, "dates that have passed are to come again")
        guard passed != counted || extras != nil else { return }
        madeOwn.lostDates = passed - counted
        madeOwn.fraction = fraction
    }
}

@available(*, unavailable, message: "a timer belongs to its loop's thread; give other threads its remote")
extension Timer: Sendable {}

extension RunLoop {
    /// Schedules a timer in modes of this loop. Modes that contain it already have no effect.
    ///
    /// The loop keeps the timer until it is invalidated or removed. An invalid timer is ignored and reported to
    /// ``trace``. On the loop's thread, O(log n).
    ///
    /// - Precondition: the timer is in no other loop.
    public func add(_ timer: Timer, forMode modes: Modes) {
        if isWatched(.effects) { return addWatched(timer, modes) }
        enrol(timer, modes)
    }

    @inline(never)
    private func addWatched(_ timer: Timer, _ modes: Modes) {
        enrol(timer, modes)
        timer.tellOfArming(in: self)
    }
}

extension RunLoop.ItemRemote where Subject == Timer {
    /// Moves the timer's next fire, as setting ``Timer/fireDate`` does, as soon as the timer's loop looks; it is woken.
    /// A fire that comes before that is not taken back. Does nothing while the timer is in no loop. Any thread.
    public func setFireDate(_ date: RunLoop.Instant) {
        link.ask { ($0 as? Timer)?.fireDate = date }
    }
}
