/// Why a timer was refused (S8, S11).
public enum TimerSourceError: Error, Equatable, CustomStringConvertible {
    /// The time until the first fire is negative.
    case negativeStart(Duration)
    /// The interval of a repeating timer is zero or negative.
    case nonPositiveInterval(Duration)
    /// The name of a named timer is empty.
    case emptyName

    public var description: String {
        switch self {
        case .negativeStart(let start): "a timer cannot start \(start) from now; for at once give zero"
        case .nonPositiveInterval(let interval):
            "a repeating timer cannot have an interval of \(interval); give one above zero, or repeats: false"
        case .emptyName: "a named timer needs a name; this one is empty"
        }
    }
}

/// A timer that knows no modes: the timer source of Grand Central Dispatch (S7, R170–R190).
///
/// It is created inactive, given a schedule and handlers, and activated. Its event handler is called on its
/// ``DeliveryQueue``: by a loop in whatever mode it runs, or on a background thread that a busy main loop does not
/// touch. Fires that come while the handler runs, while the source is suspended, or while its queue is busy are merged
/// into one delivery, and ``data`` tells how many there were; the phase is always kept (R175–R177).
///
/// ```swift
/// let source = TimerSource(queue: .background)
/// source.schedule(after: .seconds(2), repeating: .seconds(2), leeway: .milliseconds(10))
/// source.setEventHandler { source in print("tick, \(source.data) passed") }
/// source.activate()
/// ```
///
/// Keep the source: when the last reference to it goes, it stops silently and its cancel handler is not called (R184).
/// What Dispatch crashes on is defined here. A source may be released while suspended or inactive (R183): it stops, and
/// if it had been cancelled its cancel handler is called after all. A ``resume()`` without a suspend is ignored (R182).
///
/// A source that is active and has something to deliver keeps every run of its queue's loop from finishing, in whatever
/// mode. All methods may be called from any thread; none blocks. Each is O(1) but for arming, which is O(log n).
public final class TimerSource: Sendable {
    /// Where the handlers are called.
    public let queue: DeliveryQueue

    /// A name for traces and reports.
    public var name: String? { core.name }

    /// Where it was made.
    public var origin: RunLoop.Origin { core.origin }

    private let core: TimerSourceCore

    /// A source that is inactive and has neither a schedule nor handlers.
    ///
    /// - Parameters:
    ///   - queue: where its handlers are called.
    ///   - name: a name for traces and reports.
    ///   - file: for ``origin``, as `line`.
    public convenience init(
        queue: DeliveryQueue, name: String? = nil, file: StaticString = #fileID, line: UInt32 = #line
    ) {
        self.init(queue: queue, name: name, origin: RunLoop.Origin(file: file, line: line))
    }

    package init(queue: DeliveryQueue, name: String?, origin: RunLoop.Origin) {
        self.queue = queue
        core = TimerSourceCore(queue, name, origin)
        core.source = self
    }

    deinit {
        core.abandon()
    }

    // MARK: Schedule

    /// Sets when the source fires, and drops what the former schedule had not yet delivered (R171).
    ///
    /// A deadline that has passed keeps its phase and counts (R178), and so does time before the activation (R179).
    /// After ``cancel()`` nothing happens (R188). On a source that is active this may be called at any time, also from
    /// its handlers.
    ///
    /// - Parameters:
    ///   - deadline: when it fires first, on the clock of the queue; `distantFuture` disarms it (R173).
    ///   - interval: the time between fires from the deadline on; `nil` for one fire only, after which the source is
    ///     neither cancelled nor released and may be scheduled again (R172). Zero is taken as a nanosecond, and a
    ///     negative interval as none (R173).
    ///   - leeway: how much later a fire may come, so that several timers can share a wake-up, as a timer's
    ///     ``Timer/tolerance``; after the first fire at most half the interval counts (R174). Never early; on virtual
    ///     time no fire moves.
    public func schedule(
        deadline: RunLoop.Instant, repeating interval: Duration? = nil, leeway: Duration = .zero
    ) {
        core.schedule(TimerSourceCore.Schedule(deadline: deadline, interval: interval, leeway: leeway))
    }

    /// Sets when the source fires, counted from now on the clock of its queue; see
    /// ``schedule(deadline:repeating:leeway:)``. A negative delay counts as a deadline that has passed.
    public func schedule(after delay: Duration, repeating interval: Duration? = nil, leeway: Duration = .zero) {
        schedule(deadline: queue.now + delay, repeating: interval, leeway: leeway)
    }

    /// How many dates of the grid had passed since the delivery before, counted up to the moment of the delivery that
    /// is being made; at least one (R176). Outside of the event handler, that of the last delivery.
    public var data: Int { core.data }

    // MARK: Handlers

    /// Sets what is called at every delivery, on the queue; `nil` for nothing. The handler is given the source, so that
    /// it need not capture it. It is kept until another is set, or until the source is cancelled or released.
    public func setEventHandler(_ handler: (@Sendable (TimerSource) -> Void)?) {
        core.setEventHandler(handler)
    }

    /// Sets the event handler of a source whose queue is `loop`: it stays on the loop's thread, and may capture what
    /// belongs there.
    ///
    /// - Precondition: the loop is the calling thread's and the source's queue.
    public func setEventHandler(on loop: RunLoop, _ handler: @escaping (TimerSource) -> Void) {
        core.check(loop)
        core.setEventHandler(handler)
    }

    /// Sets what is called once after ``cancel()``, on the queue, when a running event handler has returned (R186).
    public func setCancelHandler(_ handler: (@Sendable () -> Void)?) {
        core.setCancelHandler(handler)
    }

    /// Sets the cancel handler of a source whose queue is `loop`: it stays on the loop's thread.
    ///
    /// - Precondition: the loop is the calling thread's and the source's queue.
    public func setCancelHandler(on loop: RunLoop, _ handler: @escaping () -> Void) {
        core.check(loop)
        core.setCancelHandler(handler)
    }

    // MARK: Life

    /// Lets the source begin to deliver; on an active one nothing happens (R170).
    public func activate() {
        core.activate()
    }

    /// Holds deliveries back until a matching ``resume()``; suspensions nest (R180). A handler that runs goes on
    /// (R181).
    public func suspend() {
        core.suspend()
    }

    /// Takes back one ``suspend()``; after the last one, what was missed is delivered at once as one (R180). On a
    /// source that is inactive and not suspended it activates (R170); otherwise, with nothing to take back, nothing
    /// happens.
    public func resume() {
        core.resume()
    }

    /// Stops the source for good: once this has returned no event handler begins any more (R185).
    ///
    /// One that is running finishes, and for another thread than the one that delivers a handler runs from the moment
    /// that the delivery was decided, a few instructions before its own first; then the cancel handler is called, if
    /// there is one, and the handlers are let go (R186, R189). While the source is suspended or inactive the cancel
    /// handler waits (R187). Without a cancel handler the event handler is let go at once, on its loop's thread.
    public func cancel() {
        core.cancel()
    }

    /// Whether the source has been cancelled.
    public var isCancelled: Bool { core.isCancelled }

    /// Has the source kept by what it still has to deliver: until it is cancelled, or has fired once and for all. Then
    /// its handlers are let go, too.
    func keepUntilDelivered() {
        core.keepUntilDelivered(self)
    }

    /// Whether something is still to be delivered.
    var isPending: Bool { core.isPending }
}
