/// The watchers of a loop, each of which is told the events that it follows, in the order in which they were added.
final class Watchers {
    typealias Event = RunLoop.WatchedEvent

    private var entries: [(watcher: any LoopWatcher, events: Event.Groups)] = []
    /// The calls that were told and are under way, the innermost last.
    private var calls: [Event.Call] = []
    /// The events that any of the watchers follows.
    private(set) var events: Event.Groups = []

    func first(where condition: (any LoopWatcher) -> Bool) -> (any LoopWatcher)? {
        entries.first { condition($0.watcher) }?.watcher
    }

    /// Adds a watcher at the end, or changes the events of which it is told, if it is not to be removed.
    func change(_ watcher: any LoopWatcher, isRemoved: Bool) {
        // Kept until everything is in order: a deinit may remove others.
        let former = entries
        let index = former.firstIndex { $0.watcher === watcher }
        if let index, isRemoved {
            entries.remove(at: index)
        } else if let index {
            entries[index].events = watcher.events
        } else if !isRemoved {
            entries.append((watcher, watcher.events))
        }
        events = entries.reduce(into: []) { $0.formUnion($1.events) }
        // The ends of these calls will not be told.
        if !events.contains(.calls) { calls = [] }
        withExtendedLifetime(former) {}
    }

    /// Tells an event to each watcher that follows its group. The list may change meanwhile.
    func tell(_ group: Event.Groups, _ event: Event) {
        for entry in entries where entry.events.contains(group) { entry.watcher.watch(event) }
    }

    func callBegan(_ callee: RunLoop.Callee, in mode: RunLoop.Mode, at time: RunLoop.Instant) {
        calls.append(Event.Call(callee: callee, mode: mode, begin: time))
        tell(.calls, .callBegan(calls.last!))
    }

    /// Tells the end of the innermost call. Nothing is known of a call that began before anyone followed calls.
    func callEnded(at time: RunLoop.Instant) {
        if let call = calls.popLast() { tell(.calls, .callEnded(call, at: time)) }
    }
}

/// The watcher behind ``RunLoop/trace``.
final class TraceWatcher: LoopWatcher {
    let body: (RunLoop.TraceEvent) -> Void

    init(_ body: @escaping (RunLoop.TraceEvent) -> Void) {
        self.body = body
    }

    var events: RunLoop.WatchedEvent.Groups { .trace }

    func watch(_ event: RunLoop.WatchedEvent) {
        if case .traced(let event) = event { body(event) }
    }
}
