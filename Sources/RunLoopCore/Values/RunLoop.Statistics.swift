extension RunLoop {
    /// What a loop has done, counted since it was made.
    public struct Statistics: Sendable, Hashable {
        /// Passes made.
        public internal(set) var passes = 0
        /// Times the loop went to sleep.
        public internal(set) var waits = 0
        /// Timers fired and display links called by the loop.
        public internal(set) var fires = 0
        /// Wake-ups that were not needed because several timers were served by one.
        public internal(set) var savedWakeUps = 0
        /// Sources served, custom ones and descriptors.
        public internal(set) var sources = 0
        /// Blocks run.
        public internal(set) var blocks = 0
        /// Descriptors parked because they were ready while their source could not be called.
        public internal(set) var parks = 0
        /// How late deadlines were served, of timers, timer sources and display links: measured from the date or, with a
        /// tolerance, from the end of the slack that was used. Time in modes that they are not in counts.
        public internal(set) var lateness = Histogram()

        package init() {}

        /// The counters, by the names that reports give them.
        package var counters: [(name: String, value: Int)] {
            [
                ("passes", passes), ("waits", waits), ("fires", fires), ("savedWakeUps", savedWakeUps),
                ("sources", sources), ("blocks", blocks), ("parks", parks),
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
