@_spi(Ports) public import RunLoopCore

/// Timers by name, for any thread.
///
/// ```swift
/// let timers = TimerRegistry()
/// try timers.schedule("poll", interval: .seconds(5), repeats: true) { print("polling") }
/// timers.cancel("poll")
/// ```
///
/// There is one timer per name. Scheduling a name again gives its timer a new interval and a new action, and drops
/// undelivered fires of the former schedule. The timers are ``TimerSource``s with 10 ms of leeway. A registry is
/// `Sendable`: any thread may call its methods, and so may actions. Each is O(log n) unless noted. When the registry
/// is released, its timers stop.
public final class TimerRegistry: Sendable {
    private let state = Locked(State())

    private struct State {
        var entries: [String: Entry] = [:]
        var lastSchedule = 0
    }

    private struct Entry {
        let source: TimerSource
        /// The number of the schedule, which distinguishes its deliveries from deliveries begun for a former schedule.
        let schedule: Int
        let repeats: Bool
        let action: @Sendable () -> Void
    }

    /// Creates a registry without timers.
    public init() {}

    /// Schedules a named timer, or gives the timer of that name a new schedule and action.
    ///
    /// - Parameters:
    ///   - name: the name; not empty.
    ///   - interval: the time until the action and between actions: not negative, and above zero if it repeats.
    ///   - queue: the queue of the action. The default is ``DeliveryQueue/background``. If the timer of that name has
    ///     another queue, a new timer replaces it.
    ///   - repeats: whether the action is called more than once. If not, the name is free before the action is called.
    ///   - fireInstantly: whether a repeating timer also calls its action at once, on its queue.
    ///   - action: the block to call; kept until it is replaced, cancelled or done.
    /// - Throws: ``TimerSourceError`` for an empty name or a bad interval; then nothing has changed.
    public func schedule(
        _ name: String, interval: Duration, queue: DeliveryQueue = .background, repeats: Bool,
        fireInstantly: Bool = false, action: @escaping @Sendable () -> Void, file: StaticString = #fileID,
        line: UInt32 = #line
    ) throws(TimerSourceError) {
        guard !name.isEmpty else { throw .emptyName }
        guard interval > .zero || !repeats else { throw .nonPositiveInterval(interval) }
        guard interval >= .zero else { throw .negativeStart(interval) }
        let replaced = state.withLock { state in
            state.lastSchedule += 1
            let number = state.lastSchedule
            let old = state.entries[name]
            let source =
                old.flatMap { $0.source.queue == queue ? $0.source : nil }
                ?? TimerSource(queue: queue, name: name, file: file, line: line)
            state.entries[name] = Entry(source: source, schedule: number, repeats: repeats, action: action)
            // Suspended, so that no delivery comes between the new handler and the new schedule.
            source.suspend()
            source.setEventHandler { [weak self] _ in self?.act(name, schedule: number) }
            source.schedule(
                after: repeats && fireInstantly ? .zero : interval, repeating: repeats ? interval : nil,
                leeway: .milliseconds(10))
            source.activate()
            source.resume()
            return old
        }
        // Release actions and sources outside of the lock: their deinits may run any code.
        withExtendedLifetime(replaced) {}
    }

    private func act(_ name: String, schedule number: Int) {
        let entry = state.withLock { state -> Entry? in
            guard let entry = state.entries[name], entry.schedule == number else { return nil }
            if !entry.repeats { state.entries[name] = nil }
            return entry
        }
        entry?.action()
    }

    /// Cancels the timer of that name. Once this has returned, on any thread, its action does not begin. A running
    /// action finishes, and may wait for the calling thread; see ``TimerSource/cancel()``.
    ///
    /// - Returns: `false` if there was no such timer. A timer that does not repeat loses its name when its delivery is
    ///   decided, a little before the action begins.
    @discardableResult
    public func cancel(_ name: String) -> Bool {
        let entry = state.withLock { $0.entries.removeValue(forKey: name) }
        entry?.source.cancel()
        return entry != nil
    }

    /// Cancels all timers. O(n).
    public func cancelAll() {
        let entries = state.withLock { state in
            defer { state.entries = [:] }
            return state.entries
        }
        for entry in entries.values { entry.source.cancel() }
    }

    /// The sorted names of the timers. O(n log n).
    public var names: [String] { state.withLock { $0.entries.keys.sorted() } }
}
