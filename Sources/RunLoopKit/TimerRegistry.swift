public import RunLoopCore

/// Timers by name (S11).
///
/// ```swift
/// let timers = TimerRegistry()
/// try timers.schedule("poll", interval: .seconds(5), repeats: true) { print("polling") }
/// timers.cancel("poll")
/// ```
///
/// A name has one timer. To schedule it again gives it a new interval and a new action; what the former schedule had
/// not delivered is dropped. The timers are ``TimerSource``s with 10 ms of leeway. All methods may be called from any
/// thread, also from actions; O(log n). When the registry goes, its timers stop.
public final class TimerRegistry: Sendable {
    private let state = Locked(State())

    private struct State {
        var entries: [String: Entry] = [:]
        var lastSchedule = 0
    }

    private struct Entry {
        let source: TimerSource
        /// Tells a delivery for this schedule from one for a former schedule that has begun already.
        let schedule: Int
        let repeats: Bool
        let action: @Sendable () -> Void
    }

    /// A registry without timers.
    public init() {}

    /// Schedules a named timer, or gives the one of that name a new schedule and action.
    ///
    /// - Parameters:
    ///   - name: the name; not empty.
    ///   - interval: the time until the action, and between actions; not negative, and above zero if it repeats.
    ///   - queue: where the action is called; ``DeliveryQueue/background`` unless given. If the timer of that name has
    ///     another queue, a new timer takes its place.
    ///   - repeats: whether the action is called again and again. If not, the name is free before it is called.
    ///   - fireInstantly: whether a repeating timer calls its action at once, too, on its queue.
    ///   - action: what to do; kept until replaced, cancelled, or done.
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
        // Actions and sources are let go of outside of the lock: their deinits may do anything.
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

    /// Cancels the timer of that name: once this has returned on the thread that would call it, its action does not
    /// begin any more; from another thread, one call that has been decided already may still come.
    ///
    /// - Returns: `false` if there was none.
    @discardableResult
    public func cancel(_ name: String) -> Bool {
        let entry = state.withLock { $0.entries.removeValue(forKey: name) }
        entry?.source.cancel()
        return entry != nil
    }

    /// Cancels all timers.
    public func cancelAll() {
        let entries = state.withLock { state in
            defer { state.entries = [:] }
            return state.entries
        }
        for entry in entries.values { entry.source.cancel() }
    }

    /// The names that have a timer, sorted. O(n log n).
    public var names: [String] { state.withLock { $0.entries.keys.sorted() } }
}
