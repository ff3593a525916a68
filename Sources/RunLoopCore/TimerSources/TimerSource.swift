/// The reason why a timer source was refused.
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

/// A timer that ignores modes: the timer source of Grand Central Dispatch.
///
/// A source is created inactive, given a schedule and handlers, and activated. Its event handler is called on its
/// ``DeliveryQueue``: by a loop in any mode, or on a background thread that a busy main loop does not delay. Fires that
/// come while the handler runs, while the source is suspended, or while its queue is busy are merged into one delivery,
/// and ``data`` is their number. The phase is always kept.
///
/// ```swift
/// let source = TimerSource(queue: .background)
/// source.schedule(after: .seconds(2), repeating: .seconds(2), leeway: .milliseconds(10))
/// source.setEventHandler { source in print("tick, \(source.data) passed") }
/// source.activate()
/// ```
///
/// Keep the source: the release of the last reference to it stops it silently, and its cancel handler is not called.
/// Uses on which Dispatch crashes are defined here. A source may be released while it is suspended or inactive: it
/// stops, and if it had been cancelled, its cancel handler is called after all. A ``resume()`` without a ``suspend()``
/// is ignored and reported to the ``RunLoop/trace`` of the queue's loop.
///
/// While a source is active and has something to deliver, it keeps every run of its queue's loop from finishing, in any
/// mode. Sources are `Sendable`: any thread may call their methods. None of them blocks, except that ``cancel()`` may
/// wait for a call to begin. Each is O(1), except that arming is O(log n).
///
/// Source: Apple's page on `DispatchSourceTimer`.
public final class TimerSource: Sendable {
    /// The queue that calls the handlers.
    public let queue: DeliveryQueue

    /// The source's name in traces and reports.
    public var name: String? { core.name }

    /// The file and line that made the source.
    public var origin: RunLoop.Origin { core.origin }

    let core: TimerSourceCore

    /// Creates an inactive source with neither a schedule nor handlers. Any thread.
    ///
    /// - Parameters:
    ///   - queue: the queue that calls the handlers.
    ///   - name: a name for traces and reports.
    ///   - file: the place for ``origin``, with `line`.
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

    /// Sets the dates at which the source fires, and drops undelivered fires of the former schedule.
    ///
    /// If the deadline has passed, the phase is kept and the missed dates count; time before the activation counts,
    /// too. Does nothing after ``cancel()``. Can be called at any time, also within the source's handlers.
    ///
    /// - Parameters:
    ///   - deadline: the first date, on the clock of the queue; `distantFuture` disarms the source.
    ///   - interval: the time between fires, counted from the deadline. `nil` for a single fire; after it the source is
    ///     not cancelled and may be scheduled again. Zero counts as a nanosecond, and a negative interval as none.
    ///   - leeway: the time by which a fire may come later, so that several timers can share a wake-up; see
    ///     ``Timer/tolerance``. After the first fire at most half of the interval counts. A fire is never early, and on
    ///     virtual time none moves.
    public func schedule(deadline: RunLoop.Instant, repeating interval: Duration? = nil, leeway: Duration = .zero) {
        core.schedule(TimerSourceCore.Schedule(deadline: deadline, interval: interval, leeway: leeway))
    }

    /// Sets the dates at which the source fires, counted from now on the clock of its queue; see
    /// ``schedule(deadline:repeating:leeway:)``. With a negative delay the deadline has passed already.
    public func schedule(after delay: Duration, repeating interval: Duration? = nil, leeway: Duration = .zero) {
        schedule(deadline: queue.now + delay, repeating: interval, leeway: leeway)
    }

    /// The number of dates of the grid that have passed since the last delivery, counted at the start of the present
    /// one; at least one. Outside of the event handler, the number for the last delivery.
    public var data: Int { core.data }

    // MARK: Handlers

    /// Sets the handler to call at every delivery, on the queue; `nil` for none. The handler receives the source, so
    /// that it need not capture it. The source keeps it until another is set, or until the source is cancelled or
    /// released.
    public func setEventHandler(_ handler: (@Sendable (TimerSource) -> Void)?) {
        core.replace { $0.eventHandler = handler }
    }

    /// Sets the event handler of a source whose queue is `loop`. The handler stays on the loop's thread and may capture
    /// values that belong there.
    ///
    /// - Precondition: the loop is the calling thread's, and the source's queue.
    public func setEventHandler(on loop: RunLoop, _ handler: @escaping (TimerSource) -> Void) {
        core.check(loop)
        core.replace { $0.eventHandler = handler }
    }

    /// Sets the handler to call once after ``cancel()``, on the queue, when the present call of the event handler has
    /// returned.
    public func setCancelHandler(_ handler: (@Sendable () -> Void)?) {
        core.replace { $0.cancelHandler = handler }
    }

    /// Sets the cancel handler of a source whose queue is `loop`. The handler stays on the loop's thread.
    ///
    /// - Precondition: the loop is the calling thread's, and the source's queue.
    public func setCancelHandler(on loop: RunLoop, _ handler: @escaping () -> Void) {
        core.check(loop)
        core.replace { $0.cancelHandler = handler }
    }

    // MARK: Life

    /// Lets the source begin to deliver. Does nothing on an active source.
    public func activate() {
        core.activate()
    }

    /// Holds deliveries back until the matching ``resume()``; suspensions nest. A running handler is not interrupted.
    public func suspend() {
        core.suspend()
    }

    /// Takes back one ``suspend()``. After the last one, all missed fires are delivered at once, as one. An inactive
    /// source that is not suspended is activated. Otherwise there is nothing to take back: the call is ignored and
    /// reported to the ``RunLoop/trace`` of the queue's loop.
    public func resume() {
        core.resume()
    }

    /// Stops the source for good. Once this has returned, on any thread, no event handler begins.
    ///
    /// A running handler finishes. Then the cancel handler is called, if there is one, and the handlers are released.
    /// While the source is suspended or inactive the cancel handler waits. Without a cancel handler the event handler
    /// is released at once, on its loop's thread.
    ///
    /// If a handler is running on another thread, this method waits until it has certainly begun, but not until it
    /// ends: the handler may itself wait for the calling thread. That takes microseconds, or up to about a millisecond
    /// if the handler computes. The wait ends after about a second, which happens only if that thread gets no processor
    /// all that time.
    public func cancel() {
        core.cancel()
    }

    /// A Boolean value that indicates whether the source has been cancelled.
    public var isCancelled: Bool { core.isCancelled }
}
