/// A timer of the wall clock: it fires at the dates of a schedule, such as every day at six.
///
/// ```swift
/// let backup = WallTimer(.daily(at: TimeOfDay(hour: 6))) { _ in startBackup() }
/// loop.add(backup, forMode: .common)
/// ```
///
/// A wall timer never fires before the wall clock shows its date. When the clock is set, or the machine has slept, the
/// kernel notifies the loop, and the timer is due by the new time.
///
/// - A clock that is set forward passes over dates, and so does a loop that is busy, that runs in another mode, or
///   whose machine sleeps. Those dates are missed; ``missedDates`` decides about them, and ``missedFires`` counts them.
///   A jump by decades is one step, except that ``MissedDates/runEach`` fires for each date.
/// - When the clock is set back, the timer looks at the present time: dates that have come will come again, like dates
///   of systemd's timers since 2026. Only the last one does not come twice in a row: a small correction just after a
///   fire causes no second one.
///
/// The dates count from the moment when the timer is first added to a loop, or from the date passed to its initializer.
/// A program may keep ``lastDate`` in a file and pass it to the timer of its next start, which then treats the dates
/// missed meanwhile like any others. The loop keeps the timer until it is invalidated or leaves its last mode, and the
/// timer keeps its block until it is invalidated. The timer invalidates itself after the last date of its schedule, and
/// the end of its loop invalidates it. A wall timer belongs to the thread of its loop and is not `Sendable`; other
/// threads stop it through its ``remote``.
public final class WallTimer: RunLoop.TimedItem {
    /// The treatment of missed dates.
    public enum MissedDates: Sendable, Hashable {
        /// The timer fires once for all missed dates, as a repeating ``Timer`` does.
        case runOnce
        /// The timer fires for each missed date, one in a pass, the first one first.
        case runEach
        /// The timer passes over missed dates: it fires for the last one alone, and only if that is no more than
        /// ``WallTimer/grace`` late.
        case skip
    }

    /// The dates at which the timer fires.
    public let schedule: any WallSchedule

    /// The treatment of missed dates. The default is ``MissedDates/runOnce``. On the thread of its loop.
    public var missedDates = MissedDates.runOnce { willSet { checkThread() } }

    /// The lateness beyond which ``MissedDates/skip`` passes over a fire. The default is a minute. On the thread of its
    /// loop.
    public var grace = Duration.seconds(60) { willSet { checkThread() } }

    /// The date of the next fire; during the callback, the date that is being fired. `nil` before the timer is first
    /// added, and after the last date. On the thread of its loop.
    public private(set) var fireDate: RunLoop.WallTime?

    /// The number of dates missed between the fire before the present one and that fire; between callbacks, before the
    /// last one. A thousand stands for more. Zero with ``MissedDates/runEach``. On the thread of its loop.
    public private(set) var missedFires = 0

    private var block: ((WallTimer) -> Void)?
    /// The last date of the schedule that has come, fired or missed: the next one counts from it. Before the first, the
    /// date from which the dates count; `nil` if none was given and the timer was not added yet. On the thread of its
    /// loop.
    public private(set) var lastDate: RunLoop.WallTime?
    /// The number of dates missed since the last fire.
    private var missed = 0
    private var due = RunLoop.Instant.distantFuture

    private static let mostMissed = 1000

    /// Creates a timer that fires at the dates of a schedule, once it has been added to a loop.
    ///
    /// - Parameters:
    ///   - schedule: the dates.
    ///   - date: the date from which the dates count, for example the ``lastDate`` of an earlier timer. Dates that have
    ///     come since then are missed. The default is the moment when the timer is first added; so it is if the date
    ///     lies ahead and is not the next one.
    ///   - block: called on the loop's thread at every fire; kept until the timer is invalidated.
    ///   - file: the place for ``RunLoop/Item/origin``, with `line`.
    public init(
        _ schedule: some WallSchedule, after date: RunLoop.WallTime? = nil, block: @escaping (WallTimer) -> Void,
        file: StaticString = #fileID, line: UInt32 = #line
    ) {
        self.schedule = schedule
        self.block = block
        lastDate = date
        super.init(origin: RunLoop.Origin(file: file, line: line))
    }

    /// Creates a timer that fires once, when the wall clock shows `date`.
    public convenience init(
        at date: RunLoop.WallTime, block: @escaping (WallTimer) -> Void, file: StaticString = #fileID,
        line: UInt32 = #line
    ) {
        self.init(SingleDate(date: date), after: .distantPast, block: block, file: file, line: line)
    }

    /// A handle by which any thread may send requests to a wall timer.
    public typealias Remote = RunLoop.ItemRemote<WallTimer>

    /// A handle by which any thread may stop the timer.
    public var remote: Remote { Remote(link: link) }

    // MARK: Its dates

    /// Finds the next date, and arms the timer for it. Without one, the timer is invalidated.
    private func armForNext(in loop: RunLoop) {
        assert(isIn(loop) && !isCalling, "a timer is armed in its callback, or in another loop")
        let last = reference(at: loop.wallTime)
        lastDate = last
        fireDate = next(after: last)
        guard let fireDate else { return invalidate() }
        due = loop.world.instant(of: fireDate)
        loop.timers.arm(self, at: due, order: loop.timers.takeOrder())
    }

    /// Returns the time from which the next date counts: the last date, or now if the clock was set back before that.
    /// The last date alone does not come again.
    private func reference(at now: RunLoop.WallTime) -> RunLoop.WallTime {
        guard let lastDate, lastDate <= now || next(after: now) == lastDate else { return now }
        return lastDate
    }

    private func next(after time: RunLoop.WallTime) -> RunLoop.WallTime? {
        guard let next = schedule.next(after: time) else { return nil }
        require(next > time, "a schedule's next date is later than the time that it was asked about, \(time)")
        return next
    }

    func clockWasSet(in loop: RunLoop) {
        if !isCalling && isValid { armForNext(in: loop) }
    }

    override func deadlineCame(in loop: RunLoop) -> Bool {
        guard isValid, let date = fireDate else {
            invalidate()
            return false
        }
        let now = loop.wallTime
        guard now >= date, let fired = takeDate(date, at: now) else {
            armForNext(in: loop)
            return false
        }
        fireDate = fired
        loop.emit(.called(kind, name: name, origin: origin, words(fired)))
        let wasCalled = dispatch(in: loop) { block?(self) }
        guard isValid else {
            invalidate()
            return wasCalled
        }
        // The callback may have removed the timer, and added it to another loop.
        if let home = self.loop { armForNext(in: home) }
        return wasCalled
    }

    /// Passes over the dates that have come, and returns the date to fire for; `nil` if there is none.
    private func takeDate(_ date: RunLoop.WallTime, at now: RunLoop.WallTime) -> RunLoop.WallTime? {
        assert(date <= now, "a date is taken before it has come")
        let last = missedDates == .runEach ? date : passDates(from: date, to: now)
        lastDate = last
        if missedDates == .skip && last + grace < now {
            missed += 1
            return nil
        }
        (missedFires, missed) = (min(missed, Self.mostMissed), 0)
        return missedDates == .skip ? last : date
    }

    /// Counts the dates after `date` that have come, and returns the last one.
    private func passDates(from date: RunLoop.WallTime, to now: RunLoop.WallTime) -> RunLoop.WallTime {
        var last = date
        while let next = next(after: last), next <= now {
            guard missed < Self.mostMissed else { return lastDate(from: next, to: now) }
            last = next
            missed += 1
        }
        return last
    }

    /// Returns the last date up to `now`, of which `date` is one, by halving the time in between: at most 63 calls of
    /// the schedule.
    private func lastDate(from date: RunLoop.WallTime, to now: RunLoop.WallTime) -> RunLoop.WallTime {
        assert(date <= now, "a date is looked for among those to come")
        // No date is after `end`.
        var (last, end) = (date, now)
        while last < end {
            let sum = Int128(last.nanoseconds) + Int128(end.nanoseconds)
            let middle = RunLoop.WallTime(nanoseconds: Int64(sum >> 1))
            assert(middle >= last && middle < end, "a search does not end")
            if let next = next(after: middle), next <= now { last = next } else { end = middle }
        }
        return last
    }

    private func words(_ date: RunLoop.WallTime) -> String {
        "fire \(name ?? "wall timer") due \(date) missed \(missedFires)"
    }

    // MARK: As an item

    override var kind: RunLoop.ItemKind { .wallTimer }
    override var hasHandler: Bool { block != nil }
    override var dueDate: RunLoop.Instant? { fireDate == nil ? nil : due }
    override var detail: String? { fireDate.map { "at \($0)" } }
    override var deadline: RunLoop.Instant { due }

    override func dropHandler(_ body: () -> Void) {
        guard let block else { return }
        self.block = nil
        body()
        withExtendedLifetime(block) {}
    }

    override func setMembership(_ membership: Membership, in loop: RunLoop) {
        guard !membership.isEmpty else {
            if home != nil { withdraw(from: loop) }
            return
        }
        if home != nil { return loop.timers.move(self, to: membership) }
        homeChanged(to: loop)
        loop.timers.register(self, membership)
        loop.watchWallClock()
        if !isCalling { armForNext(in: loop) }
    }
}

@available(*, unavailable, message: "a timer belongs to its loop's thread; give other threads its remote")
extension WallTimer: Sendable {}

extension RunLoop {
    /// Schedules a wall timer in modes of this loop. Modes that contain it already have no effect.
    ///
    /// A timer that was removed and is added again keeps its place in the schedule: dates that have come since then are
    /// missed. An invalid timer is ignored and reported to ``trace``. A timer whose schedule has no date to come is
    /// invalidated. On the loop's thread, O(log n) and the time that the schedule takes to find a date.
    ///
    /// - Precondition: the timer is in no other loop.
    public func add(_ timer: WallTimer, forMode modes: Modes) {
        enrol(timer, modes)
    }
}
