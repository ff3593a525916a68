extension RunLoop {
    /// Counters of a loop's activity since it was made. A value and `Sendable`.
    public struct Statistics: Sendable, Hashable {
        /// The number of passes made.
        public internal(set) var passes = 0
        /// The number of times that the loop went to sleep.
        public internal(set) var waits = 0
        /// The number of calls of timers, timer sources and display links, and of tasks whose sleep has ended.
        public internal(set) var fires = 0
        /// The number of wake-ups saved because one served several timers.
        public internal(set) var savedWakeUps = 0
        /// The number of sources served, both custom sources and descriptor sources.
        public internal(set) var sources = 0
        /// The number of blocks run.
        public internal(set) var blocks = 0
        /// The number of tasks' jobs run.
        public internal(set) var jobs = 0
        /// The number of descriptors parked because they were ready while their source could not be called.
        public internal(set) var parks = 0
        /// The lateness of timers, timer sources and display links, counted from the date or, with a tolerance, from
        /// the end of the part of it that was used. Includes time that the loop spent in other modes.
        public internal(set) var lateness = Histogram()

        /// Creates counters that are all zero.
        @_spi(Ports) public init() {}

        /// The counters with their names in reports.
        @_spi(Ports) public var counters: [(name: String, value: Int)] {
            [
                ("passes", passes), ("waits", waits), ("fires", fires), ("savedWakeUps", savedWakeUps),
                ("sources", sources), ("blocks", blocks), ("jobs", jobs), ("parks", parks),
            ]
        }

        mutating func count(fires fired: Int, slept: Bool) {
            fires += fired
            guard slept else { return }
            waits += 1
            savedWakeUps += max(0, fired - 1)
        }
    }
}
