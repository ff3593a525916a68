/// The core of a timer source: an item of the home loop's timer queue, and the state of the source.
///
/// Any thread may change the state. The timer queue follows on the home loop's thread.
final class TimerSourceCore: RunLoop.TimedItem, @unchecked Sendable {
    // Unchecked. `state` is accessed only under the home loop's lock, and the fields of the timer queue only on that
    // loop's thread; `source` is set once, before anything else refers to this object. Handlers that are not `Sendable`
    // are called and released on the home loop's thread as long as it exists.

    weak var source: TimerSource?
    private let queue: DeliveryQueue
    /// The latest and the earliest date to fire.
    private var armed = (deadline: RunLoop.Instant.distantFuture, earliest: RunLoop.Instant.distantFuture)
    // The lock excludes the conflicts that exclusivity checks would find, and they took an eighth of an event.
    @exclusivity(unchecked) private var state = State()
    /// The gate that calls of the event handler pass; closed when the source is cancelled.
    private let gate = CallGate()

    init(_ queue: DeliveryQueue, _ name: String?, _ origin: RunLoop.Origin) {
        self.queue = queue
        super.init(origin: origin)
        if name != nil { self.name = name }
    }

    // MARK: As an item

    override var kind: RunLoop.ItemKind { .timerSource }
    /// `false`, because the handlers are part of the state. Without a handler an item is not invalidated as others are.
    override var hasHandler: Bool { false }
    override func dropHandler(_ body: () -> Void) {}
    override var deadline: RunLoop.Instant { armed.deadline }
    override var earliest: RunLoop.Instant { armed.earliest }

    override var dueDate: RunLoop.Instant? { withLock { $0.isHeldBack ? nil : $0.schedule?.date } }

    override var detail: String? {
        let (isHeldBack, schedule) = withLock { ($0.isHeldBack, $0.schedule) }
        guard !isHeldBack else { return "held back" }
        return schedule.flatMap { schedule in schedule.period.map { "every \($0)" } }
    }

    override func loopEnded() {
        let dropped = withLock { state in
            state.isKnown = false
            return Self.takeAll(&state)
        }
        withExtendedLifetime(dropped) {}
    }

    override func deadlineCame(in loop: RunLoop) -> Bool {
        guard let pool = queue.pool else {
            return deliver(in: loop, at: loop.recentTime())
        }
        withLock { state in
            assert(state.delivery == .none, "an event is handed over while another one is on its way")
            state.delivery = .handedOver
        }
        pool.submit(from: loop) { self.deliver(in: $0, at: $0.now) }
        return true
    }

    struct Schedule {
        private var grid: Grid
        private var fraction: Grid.Fraction?
        /// The time between dates; `nil` if there is only one.
        let period: Duration?
        private let leeway: Duration
        /// Set if one of the dates has been delivered.
        private var hasBegun = false

        init(deadline: RunLoop.Instant, interval: Duration?, leeway: Duration) {
            period = interval.flatMap { $0 >= .zero ? max($0, Grid.shortest) : nil }
            (grid, fraction) = period.map { Grid.repeating(deadline, $0) } ?? (Grid(date: deadline), nil)
            self.leeway = max(.zero, leeway)
        }

        var date: RunLoop.Instant { grid.date }

        /// Returns the latest date at which to wake for the pending date.
        func deadline(isVirtual: Bool) -> RunLoop.Instant {
            assert(leeway >= .zero, "an event may come before its date")
            guard leeway > .zero, !isVirtual else { return date }
            guard hasBegun, let period else { return date + leeway }
            return date + min(leeway, period / 2)
        }

        /// Moves to the first date after `now`, and returns the number of dates that have come.
        mutating func take(at now: RunLoop.Instant) -> Int {
            let dates = grid.datesPassed(at: now, fraction).saturatingAdding(1)
            assert(dates > 0 && grid.date <= now, "an event is taken before its date")
            grid.advance(by: dates, &fraction)
            hasBegun = true
            return Int(dates)
        }
    }

    /// References that are released together, outside of the lock: their deinits may do anything.
    struct Belongings {
        var eventHandler: ((TimerSource) -> Void)?
        var cancelHandler: (() -> Void)?
        /// The source, while it keeps itself.
        var keeper: TimerSource?
    }

    private struct State {
        var belongings = Belongings()
        /// Former handlers, until the home loop releases them.
        var replaced: [Belongings] = []
        var schedule: Schedule?
        var data = 0
        var isActive = false
        var suspensions = 0
        var cancellation = Cancellation.none
        var delivery = Delivery.none
        /// Set if the home loop's timer queue has the item.
        var isKnown = false
        /// Set if the home loop has been asked to act on the state.
        var isUpdatePosted = false

        var isHeldBack: Bool { !isActive || suspensions > 0 }
        var isCancelled: Bool { cancellation != .none }

        enum Cancellation {
            case none
            /// The source was cancelled, and its cancel handler has still to be called.
            case owesCall
            case done
        }

        enum Delivery {
            case none
            /// A thread of the pool will deliver.
            case handedOver
            /// A handler is on the stack.
            case running
        }
    }

    /// The next step of the home loop's timer queue.
    private enum Wish {
        /// Keeps the item in the queue, without a deadline.
        case hold
        case fire(Schedule)
        case callCancelHandler
    }

    private enum Callout {
        case event((TimerSource) -> Void)
        case cancel(() -> Void)
    }
}

// MARK: - State, from any thread

extension TimerSourceCore {
    var data: Int { withLock { $0.data } }
    var isCancelled: Bool { withLock { $0.isCancelled } }
    var isPending: Bool { withLock { !$0.isCancelled && $0.schedule != nil } }

    func schedule(_ schedule: Schedule) {
        change { state in
            guard !state.isCancelled else { return false }
            state.schedule = schedule.date == .distantFuture ? nil : schedule
            return state.isActive
        }
    }

    /// Keeps the source until it is cancelled or has made its only fire. Then its handlers are released too.
    func keepUntilDelivered(_ source: TimerSource) {
        withLock { if !$0.isCancelled { $0.belongings.keeper = source } }
    }

    func activate() {
        change { state in
            defer { state.isActive = true }
            return !state.isActive
        }
    }

    func suspend() {
        change { state in
            state.suspensions += 1
            return state.isActive && state.suspensions == 1
        }
    }

    func resume() {
        var isUnmatched = false
        change { state in
            if state.suspensions > 0 {
                state.suspensions -= 1
                return state.isActive && state.suspensions == 0
            }
            defer { state.isActive = true }
            isUnmatched = state.isActive
            return !state.isActive
        }
        guard isUnmatched else { return }
        let event = RunLoop.TraceEvent.ignored("\(self) was resumed, but it was not suspended")
        if let loop = homeLoop { return loop.emit(event) }
        _ = queue.home.mailbox.post(.urgent { $0.emit(event) })
    }

    func cancel() {
        change { state in
            guard !state.isCancelled else { return false }
            state.schedule = nil
            state.cancellation = state.belongings.cancelHandler != nil ? .owesCall : .done
            return true
        }
        gate.close()
        gate.waitForBegin()
    }

    /// Notes that the source has been released. If it was cancelled, it still owes a call of its cancel handler.
    func abandon() {
        change { state in
            if state.cancellation == .owesCall {
                state.isActive = true
                state.suspensions = 0
                return true
            }
            defer { state.cancellation = .done }
            state.schedule = nil
            return !state.isCancelled
        }
    }

    func check(_ loop: RunLoop) {
        loop.checkThread()
        require(
            queue.pool == nil && queue.home.mailbox === loop.mailbox,
            "a handler that stays on a loop's thread needs a source whose queue is that loop; "
                + "give this one a @Sendable handler")
    }

    private func withLock<Result>(_ body: (inout State) -> Result) -> Result {
        queue.home.mailbox.sources.withLock { _ in body(&state) }
    }

    /// Changes the state, and has the home loop act on it if `body` returns `true`, at once on its own thread.
    private func change(_ body: (inout State) -> Bool) {
        if let loop = homeLoop {
            if withLock(body) { update(in: loop) }
            return
        }
        let isNews = withLock { state in
            guard body(&state), !state.isUpdatePosted || queue.home.mailbox.keepsOrder else { return false }
            state.isUpdatePosted = true
            return true
        }
        guard isNews, !queue.home.mailbox.post(.urgent { self.update(in: $0) }) else { return }
        // The loop has ended. It releases the sources that it knows, on its own thread; the rest is released here.
        let dropped = withLock { state in
            state.isUpdatePosted = false
            return state.isKnown ? [] : Self.takeAll(&state)
        }
        withExtendedLifetime(dropped) {}
    }

    private static func takeAll(_ state: inout State) -> [Belongings] {
        defer { (state.schedule, state.belongings, state.replaced) = (nil, Belongings(), []) }
        return state.replaced + [state.belongings]
    }

    /// The home loop, on its own thread; `nil` on others.
    private var homeLoop: RunLoop? {
        guard let loop = RunLoop.installed, loop.mailbox === queue.home.mailbox, !loop.hasEnded else {
            return nil
        }
        loop.noticeUse()
        return loop
    }

    /// Replaces a handler. The state keeps the old one until the home loop releases it on its own thread: a reference
    /// on this thread could turn out to be the last.
    func replace(_ set: (inout Belongings) -> Void) {
        let replaces = withLock { state in
            guard !state.isCancelled else { return false }
            let isFirst = state.belongings.eventHandler == nil && state.belongings.cancelHandler == nil
            if !isFirst { state.replaced.append(state.belongings) }
            set(&state.belongings)
            return !isFirst
        }
        guard replaces else { return }
        if homeLoop == nil {
            guard !queue.home.mailbox.post(.urgent { _ in self.letReplacedGo() }) else { return }
            // The loop has ended; it releases the sources that it knows.
            guard withLock({ !$0.isKnown }) else { return }
        }
        letReplacedGo()
    }

    private func letReplacedGo() {
        let replaced = withLock { state in
            defer { state.replaced = [] }
            return state.replaced
        }
        withExtendedLifetime(replaced) {}
    }
}

// MARK: - On the home loop's thread

extension TimerSourceCore {
    /// Updates the loop's timer queue to match the state.
    private func update(in loop: RunLoop) {
        assert(loop.mailbox === queue.home.mailbox, "a timer source is armed in another loop than its own")
        let (wish, unneeded, replaced) = withLock { state in
            state.isUpdatePosted = false
            defer { state.replaced = [] }
            let wish = Self.wish(state)
            state.isKnown = wish != nil
            return (wish, Self.takeUnneeded(&state), state.replaced)
        }
        switch wish {
        case nil:
            if home != nil { withdraw(from: loop) }
        case .hold:
            register(in: loop)
            loop.timers.disarm(self)
        case .fire(let schedule):
            arm(in: loop, from: schedule.date, at: schedule.deadline(isVirtual: loop.isVirtual))
        case .callCancelHandler:
            let now = loop.now
            arm(in: loop, from: now, at: now)
        }
        withExtendedLifetime((unneeded, replaced)) {}
    }

    private func register(in loop: RunLoop) {
        assert(home == nil || isIn(loop), "a timer source is in another loop than its own")
        guard home == nil else { return }
        homeChanged(to: loop)
        loop.timers.register(self, .everywhere)
    }

    private func arm(in loop: RunLoop, from earliest: RunLoop.Instant, at deadline: RunLoop.Instant) {
        assert(earliest <= deadline, "an event is due before its date")
        register(in: loop)
        armed = (deadline, earliest)
        loop.timers.arm(self, at: deadline, order: loop.timers.takeOrder())
    }

    private static func wish(_ state: State) -> Wish? {
        let isOnItsWay = state.delivery != .none
        guard !state.isCancelled else {
            guard state.cancellation == .owesCall, !state.isHeldBack else { return nil }
            return isOnItsWay ? .hold : .callCancelHandler
        }
        guard state.isActive, let schedule = state.schedule else { return nil }
        return isOnItsWay || state.isHeldBack ? .hold : .fire(schedule)
    }
}

// MARK: - On the thread that delivers

extension TimerSourceCore {
    /// Calls the handler whose turn it is, unless the state has changed meanwhile. Returns whether one was called.
    @discardableResult
    func deliver(in loop: RunLoop, at now: RunLoop.Instant) -> Bool {
        // Not under the lock: releasing the last reference takes the lock too.
        let source = source
        let callout = withLock { Self.begin(&$0, at: now, isAbandoned: source == nil) }
        let isCalled = callout != nil
        switch callout {
        case .event(let handler):
            loop.emit(.called(kind, name: name, origin: origin, "deliver \(name ?? "source") data \(data)"))
            loop.dispatch(callee) { _ = gate.pass(on: loop.owner.number) { handler(source!) } }
        case .cancel(let handler):
            loop.dispatch(callee, handler)
        case nil:
            break
        }
        let unneeded = withLock { state in
            // Without a callout, another thread of the pool may be delivering by now.
            if isCalled {
                assert(state.delivery == .running, "a delivery ends twice")
                state.delivery = .none
            }
            return Self.takeUnneeded(&state)
        }
        change { _ in true }
        withExtendedLifetime((unneeded, source)) {}
        return isCalled
    }

    private static func begin(_ state: inout State, at now: RunLoop.Instant, isAbandoned: Bool) -> Callout? {
        assert(state.delivery != .running, "an event is delivered while another one is")
        state.delivery = .none
        guard !state.isHeldBack else { return nil }
        guard !state.isCancelled else {
            guard state.cancellation == .owesCall, let handler = state.belongings.cancelHandler else { return nil }
            (state.cancellation, state.delivery) = (.done, .running)
            return .cancel(handler)
        }
        // A schedule that was set while the delivery was on its way may not be due yet.
        guard let schedule = state.schedule, schedule.date <= now, !isAbandoned else { return nil }
        if schedule.period != nil {
            state.data = state.schedule!.take(at: now)
        } else {
            state.data = 1
            state.schedule = nil
        }
        guard let handler = state.belongings.eventHandler else { return nil }
        state.delivery = .running
        return .event(handler)
    }

    /// Takes references that are no longer needed: the handlers once the source is cancelled and done, and everything
    /// of a source that keeps itself once nothing is left to deliver.
    @inline(__always)
    private static func takeUnneeded(_ state: inout State) -> Belongings {
        guard state.delivery != .running else { return Belongings() }
        let isOver = state.belongings.keeper != nil && state.schedule == nil
        guard isOver || state.isCancelled, state.cancellation != .owesCall else { return Belongings() }
        defer { state.belongings = Belongings() }
        return state.belongings
    }
}
