/// The watchers of a loop, each of which is told the events that it follows, in the order in which they were added.
final class Watchers {
    private struct Entry {
        let watcher: any LoopWatcher
        let events: RunLoop.WatchedEvents
    }

    private var entries: [Entry] = []
    /// The calls that were told and are under way, the innermost last.
    private var calls: [RunLoop.WatchedCall] = []
    /// The events that any of the watchers follows.
    private(set) var events: RunLoop.WatchedEvents = []

    func follow(_ events: RunLoop.WatchedEvents) -> Bool { self.events.contains(events) }

    func first<Watcher: LoopWatcher>(of type: Watcher.Type = Watcher.self) -> Watcher? {
        for entry in entries { if let watcher = entry.watcher as? Watcher { return watcher } }
        return nil
    }

    /// Adds a watcher at the end, or changes the events of which it is told.
    func add(_ watcher: any LoopWatcher) {
        let entry = Entry(watcher: watcher, events: watcher.events)
        if let index = entries.firstIndex(where: { $0.watcher === watcher }) {
            entries[index] = entry
        } else {
            entries.append(entry)
        }
        entriesChanged()
    }

    func remove(_ watcher: any LoopWatcher) {
        // Kept until everything is in order: a deinit may remove others.
        let former = entries
        entries = former.filter { $0.watcher !== watcher }
        entriesChanged()
        withExtendedLifetime(former) {}
    }

    private func entriesChanged() {
        events = entries.reduce(into: []) { $0.formUnion($1.events) }
        // The ends of these calls will not be told.
        if !follow(.calls) { calls = [] }
    }

    /// Calls `body` with each watcher that follows the event. The list may change meanwhile.
    private func tell(_ event: RunLoop.WatchedEvents, _ body: (any LoopWatcher) -> Void) {
        for entry in entries where entry.events.contains(event) { body(entry.watcher) }
    }

    // MARK: Events

    func runBegan(in mode: RunLoop.Mode, at time: RunLoop.Instant) {
        tell(.calls) { $0.runBegan(in: mode, at: time) }
    }

    func runEnded(in mode: RunLoop.Mode, at time: RunLoop.Instant) {
        tell(.calls) { $0.runEnded(in: mode, at: time) }
    }

    func callBegan(_ callee: RunLoop.Callee, in mode: RunLoop.Mode, at time: RunLoop.Instant) {
        let call = RunLoop.WatchedCall(callee: callee, mode: mode, begin: time)
        calls.append(call)
        tell(.calls) { $0.callBegan(call) }
    }

    /// Tells the end of the innermost call. Nothing is known of a call that began before anyone followed calls.
    func callEnded(at time: RunLoop.Instant) {
        guard let call = calls.popLast() else { return }
        tell(.calls) { $0.callEnded(call, at: time) }
    }

    func callTakesTime() {
        tell(.calls) { $0.callTakesTime() }
    }

    func fellAsleep(in mode: RunLoop.Mode, until date: RunLoop.Instant, at time: RunLoop.Instant) {
        tell(.sleeps) { $0.fellAsleep(in: mode, until: date, at: time) }
    }

    func wokeUp(in mode: RunLoop.Mode, by reason: RunLoop.WakeUpReason, at time: RunLoop.Instant) {
        tell(.sleeps) { $0.wokeUp(in: mode, by: reason, at: time) }
    }

    func caused(_ callee: RunLoop.Callee) {
        tell(.effects) { callee.kind.hasDate ? $0.armed(callee) : $0.posted(callee) }
    }

    func callFollows(_ number: UInt64, postedBy thread: @autoclosure () -> String?) {
        guard follow(.effects) else { return }
        let thread = thread()
        tell(.effects) { $0.callFollows(number, postedBy: thread) }
    }

    func moved(received: Int, sent: Int, by descriptor: Int32, of callee: RunLoop.Callee) {
        tell(.bytes) { $0.moved(received: received, sent: sent, by: descriptor, of: callee) }
    }

    func traced(_ event: RunLoop.TraceEvent) {
        tell(.trace) { $0.traced(event) }
    }
}

/// The watcher behind ``RunLoop/trace``.
final class TraceWatcher: LoopWatcher {
    let body: (RunLoop.TraceEvent) -> Void

    init(_ body: @escaping (RunLoop.TraceEvent) -> Void) {
        self.body = body
    }

    var events: RunLoop.WatchedEvents { .trace }

    func traced(_ event: RunLoop.TraceEvent) { body(event) }
}
