extension Exploration {
    /// The faults to look for besides an error that the program throws. A value and `Sendable`.
    public struct Limits: Sendable, Hashable {
        /// Whether it is a fault if nothing can happen any more and a task of a loop waits. A program whose tasks serve
        /// until they are cancelled says `false`, or cancels them.
        public var reportsDeadlocks: Bool

        /// Whether it is a fault if a task of a loop does not end when it is cancelled at the end of the simulation.
        public var reportsLeaks: Bool

        /// How much later than its date a timer may fire, on a thread that has not ended; without a limit unless given.
        public var latestFire: Duration?

        /// How long a run may take, in real time; checked only for runs in other processes.
        public var longestRun: Duration

        /// Deadlocks and leaks are faults, late timers are not, and a run takes no more than half a minute, unless given.
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
