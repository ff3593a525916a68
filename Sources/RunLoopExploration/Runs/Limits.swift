extension Exploration {
    /// The faults to look for besides an error that the program throws. A `Sendable` value.
    public struct Limits: Sendable, Hashable {
        /// A Boolean value that indicates whether a task of a loop that waits when nothing can happen any more is a
        /// fault. Set `false` for a program whose tasks serve until they are cancelled, or cancel them.
        public var reportsDeadlocks: Bool

        /// A Boolean value that indicates whether a task of a loop that does not end when cancelled at the end of the
        /// simulation is a fault.
        public var reportsLeaks: Bool

        /// The largest permitted lateness of a timer, on a thread that has not ended; `nil`, the default, for no limit.
        public var latestFire: Duration?

        /// The longest time that a run may take, in real time; checked only for runs in other processes.
        public var longestRun: Duration

        /// Creates limits. By default, deadlocks and leaks are faults, late timers are not, and a run takes no more
        /// than half a minute.
        public init(
            reportsDeadlocks: Bool = true, reportsLeaks: Bool = true, latestFire: Duration? = nil,
            longestRun: Duration = .seconds(30)
        ) {
            self.longestRun = longestRun
            self.reportsDeadlocks = reportsDeadlocks
            self.reportsLeaks = reportsLeaks
            self.latestFire = latestFire
        }
    }
}

typealias Limits = Exploration.Limits
