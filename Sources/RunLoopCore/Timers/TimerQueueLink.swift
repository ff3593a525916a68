/// What a client of a timer queue keeps for the queue: where it is, and its place in the order.
struct TimerQueueLink {
    enum Place {
        /// Armed, at that index of its lane's heap.
        case heap(Int32)
        /// Armed, at that index among those that a pass has set aside.
        case aside(Int32)
        /// Not armed, at that index among those that rest.
        case resting(Int32)
    }

    /// Its place among equal deadlines.
    var order: UInt64 = 0
    private var laneAndLaterOrder: UInt64 = 0
    var place = Place.resting(-1)

    /// Which of the queue's lanes it is in.
    var lane: Int {
        get { Int(laneAndLaterOrder & 0xffff) }
        set { laneAndLaterOrder = laneAndLaterOrder & ~0xffff | UInt64(newValue) }
    }

    /// The place in the order that it took when it was put off; 0 if it was not. With a million armings a second, 48
    /// bits last for nine years.
    var laterOrder: UInt64 {
        get { laneAndLaterOrder >> 16 }
        set { laneAndLaterOrder = laneAndLaterOrder & 0xffff | newValue << 16 }
    }

    var isArmed: Bool { if case .resting = place { false } else { true } }
}

/// What can wait in a timer queue: a reference that does not count; the queue counts one for each client that it has.
protocol TimerQueueClient: BitwiseCopyable, Equatable {
    /// What it is due at, as it was armed or put off last.
    var deadline: RunLoop.Instant { get }
    /// From when on it may be called, if its loop is awake anyway: its deadline less its tolerance.
    var earliest: RunLoop.Instant { get }
    /// Tells clients apart.
    var identity: UnsafeRawPointer { get }

    func withLink<Result>(_ body: (inout TimerQueueLink) -> Result) -> Result
    func retain()
    func release()
}

extension TimerQueueClient {
    @inline(__always) var link: TimerQueueLink { withLink { $0 } }
}
