/// The followers of a loop: its watchers, and the three to which it speaks directly.
struct Watching {
    /// The events that anyone follows: the one word that a loop without followers reads.
    private(set) var events: RunLoop.WatchedEvents = []

    /// The watchers, once there has been one.
    private(set) var watchers: Watchers?
    /// The log of the loop's events, while a recorder keeps one.
    ///
    /// A recorder is a watcher in all but the call: it is told the same events, without a list, a callee made for each
    /// call of a source, and a time for each begin. By way of the list …
    var log: FlightLog? {
        didSet {
            flight = log.map { UnownedReference($0) }
            followersChanged()
        }
    }
    /// Unretained `log`; retaining it cost four locked instructions per event.
    private(set) var flight: UnownedReference<FlightLog>?
    /// The schedule that chooses for the loop, in an explored simulation.
    var schedule: (any CallSchedule)? { didSet { followersChanged() } }
    /// Notifies the guest of uses of the loop between its runs, while the loop is a guest.
    var useHandler: (() -> Void)? { didSet { followersChanged() } }

    /// Set if a sleep has begun whose end was not told yet.
    var isAsleep = false

    mutating func add(_ watcher: any LoopWatcher) {
        if watchers == nil { watchers = Watchers() }
        watchers!.add(watcher)
        followersChanged()
    }

    mutating func remove(_ watcher: any LoopWatcher) {
        watchers?.remove(watcher)
        followersChanged()
    }

    private mutating func followersChanged() {
        events = watchers?.events ?? []
        if flight != nil { events.formUnion(.activity) }
        if schedule != nil { events.insert(.choices) }
        if useHandler != nil { events.insert(.uses) }
    }
}
