/// The followers of a loop: its watchers, and three to which it speaks directly.
struct Watching {
    /// The events that anyone follows: the one word that a loop without followers reads.
    private(set) var events: RunLoop.WatchedEvent.Groups = []
    /// The events that a watcher follows.
    private(set) var told: RunLoop.WatchedEvent.Groups = []
    /// Set if a sleep has begun whose end was not told yet.
    var isAsleep = false

    /// The watchers, once there has been one.
    private(set) var watchers: Watchers?
    /// The log of the loop's events, while a recorder keeps one.
    ///
    /// A recorder is told the same events as a watcher, without a list, without a value for each, and with the time of
    /// the last event for the begin of a call. An echo takes 2,980 instructions with a recorder, and 6,280 with a
    /// watcher that follows the same events and does nothing.
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

    mutating func change(_ watcher: any LoopWatcher, isRemoved: Bool) {
        if watchers == nil { watchers = Watchers() }
        watchers!.change(watcher, isRemoved: isRemoved)
        followersChanged()
    }

    private mutating func followersChanged() {
        told = watchers?.events ?? []
        events = told
        if flight != nil { events.formUnion(.activity) }
        if schedule != nil { events.insert(.choices) }
        if useHandler != nil { events.insert(.uses) }
    }
}
