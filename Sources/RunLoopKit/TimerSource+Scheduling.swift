public import RunLoopCore

// Sources with a block or a weakly held target, inactive or active at once, each for the calling thread's loop and for
// any queue.

extension TimerSource {
    /// Creates a source of the calling thread's loop, to be started with ``activate()``.
    ///
    /// - Parameters:
    ///   - start: the time until the first fire, from now; not negative.
    ///   - interval: the time between fires, above zero; used only if the source repeats.
    ///   - repeats: whether the source fires more than once; if not, it cancels itself after its handler.
    ///   - handler: called at every delivery.
    /// - Throws: ``TimerSourceError`` for a negative start, or an interval that is not above zero.
    @available(*, noasync, message: "it asks the thread for its loop; give it queue: .loop(loop.remote)")
    public convenience init(
        start: Duration, interval: Duration, repeats: Bool, handler: @escaping (TimerSource) -> Void,
        file: StaticString = #fileID, line: UInt32 = #line
    ) throws(TimerSourceError) {
        try TimerSource.check(start, interval, repeats)
        let loop = RunLoop.current
        self.init(queue: .loop(loop.remote), file: file, line: line)
        setEventHandler(on: loop) { source in
            handler(source)
            if !repeats { source.cancel() }
        }
        schedule(after: start, repeating: repeats ? interval : nil)
    }

    /// Creates a source of any queue, to be started with ``activate()``. Any thread.
    ///
    /// - Parameters:
    ///   - start: the time until the first fire, from now; not negative.
    ///   - interval: the time between fires, above zero; used only if the source repeats.
    ///   - queue: the queue of the handler.
    ///   - repeats: whether the source fires more than once; if not, it cancels itself after its handler.
    ///   - handler: called at every delivery.
    /// - Throws: ``TimerSourceError`` for a negative start, or an interval that is not above zero.
    public convenience init(
        start: Duration, interval: Duration, queue: DeliveryQueue, repeats: Bool,
        handler: @escaping @Sendable (TimerSource) -> Void, file: StaticString = #fileID, line: UInt32 = #line
    ) throws(TimerSourceError) {
        try TimerSource.check(start, interval, repeats)
        self.init(queue: queue, file: file, line: line)
        setEventHandler { source in
            handler(source)
            if !repeats { source.cancel() }
        }
        schedule(after: start, repeating: repeats ? interval : nil)
    }

    /// Creates a source of the calling thread's loop that calls a method of `weakTarget` without keeping it. Once the
    /// target has been released, the source cancels itself.
    @available(*, noasync, message: "it asks the thread for its loop; give it queue: .loop(loop.remote)")
    public convenience init<Target: AnyObject>(
        start: Duration, interval: Duration, weakTarget: Target, selector: @escaping (Target) -> (TimerSource) -> Void,
        repeats: Bool, file: StaticString = #fileID, line: UInt32 = #line
    ) throws(TimerSourceError) {
        let handler = { [weak weakTarget] (source: TimerSource) in
            guard let weakTarget else { return source.cancel() }
            selector(weakTarget)(source)
        }
        try self.init(start: start, interval: interval, repeats: repeats, handler: handler, file: file, line: line)
    }

    /// Creates a source of any queue that calls a method of `weakTarget` without keeping it. Once the target has been
    /// released, the source cancels itself. Any thread.
    public convenience init<Target: AnyObject & Sendable>(
        start: Duration, interval: Duration, queue: DeliveryQueue, weakTarget: Target,
        selector: @escaping @Sendable (Target) -> (TimerSource) -> Void, repeats: Bool, file: StaticString = #fileID,
        line: UInt32 = #line
    ) throws(TimerSourceError) {
        let handler = { @Sendable [weak weakTarget] (source: TimerSource) in
            guard let weakTarget else { return source.cancel() }
            selector(weakTarget)(source)
        }
        try self.init(
            start: start, interval: interval, queue: queue, repeats: repeats, handler: handler, file: file, line: line)
    }

    private static func check(_ start: Duration, _ interval: Duration, _ repeats: Bool) throws(TimerSourceError) {
        guard start >= .zero else { throw .negativeStart(start) }
        guard !repeats || interval > .zero else { throw .nonPositiveInterval(interval) }
    }

    private func activated() -> TimerSource {
        activate()
        return self
    }

    /// Creates a source of the calling thread's loop, active at once. Keep it: it stops when it is released.
    @available(*, noasync, message: "it asks the thread for its loop; give it queue: .loop(loop.remote)")
    public static func scheduled(
        start: Duration, interval: Duration, repeats: Bool, handler: @escaping (TimerSource) -> Void,
        file: StaticString = #fileID, line: UInt32 = #line
    ) throws(TimerSourceError) -> TimerSource {
        try TimerSource(
            start: start, interval: interval, repeats: repeats, handler: handler, file: file, line: line
        ).activated()
    }

    /// Creates a source of any queue, active at once. Keep it: it stops when it is released. Any thread.
    public static func scheduled(
        start: Duration, interval: Duration, queue: DeliveryQueue, repeats: Bool,
        handler: @escaping @Sendable (TimerSource) -> Void, file: StaticString = #fileID, line: UInt32 = #line
    ) throws(TimerSourceError) -> TimerSource {
        try TimerSource(
            start: start, interval: interval, queue: queue, repeats: repeats, handler: handler, file: file, line: line
        ).activated()
    }

    /// Creates a source of the calling thread's loop on a weakly held target, active at once. Keep it: it stops when
    /// released.
    @available(*, noasync, message: "it asks the thread for its loop; give it queue: .loop(loop.remote)")
    public static func scheduled<Target: AnyObject>(
        start: Duration, interval: Duration, weakTarget: Target, selector: @escaping (Target) -> (TimerSource) -> Void,
        repeats: Bool, file: StaticString = #fileID, line: UInt32 = #line
    ) throws(TimerSourceError) -> TimerSource {
        try TimerSource(
            start: start, interval: interval, weakTarget: weakTarget, selector: selector, repeats: repeats,
            file: file, line: line
        ).activated()
    }

    /// Creates a source of any queue on a weakly held target, active at once. Keep it: it stops when released. Any
    /// thread.
    public static func scheduled<Target: AnyObject & Sendable>(
        start: Duration, interval: Duration, queue: DeliveryQueue, weakTarget: Target,
        selector: @escaping @Sendable (Target) -> (TimerSource) -> Void, repeats: Bool, file: StaticString = #fileID,
        line: UInt32 = #line
    ) throws(TimerSourceError) -> TimerSource {
        try TimerSource(
            start: start, interval: interval, queue: queue, weakTarget: weakTarget, selector: selector,
            repeats: repeats, file: file, line: line
        ).activated()
    }
}
