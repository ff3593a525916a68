extension RunLoop {
    /// The limit of one kind of work before timers and sources have their turn.
    ///
    /// Time is checked after 1, 2, 4 … 64 calls, and then after every 64: slow calls are detected soon, and quick ones
    /// do not pay for the clock.
    struct Turn {
        private var count = 0
        private var nextLook = 1
        private var end: Instant?

        /// Counts a call, and returns whether the turn is over.
        @inline(__always)
        mutating func isOver(in loop: RunLoop) -> Bool {
            assert(count < nextLook, "a turn has missed its look at the clock")
            count &+= 1
            return count == nextLook && look(in: loop)
        }

        private mutating func look(in loop: RunLoop) -> Bool {
            nextLook += min(count, 64)
            let now = loop.recentTime()
            let end = self.end ?? now + RunLoop.timePerTurn
            self.end = end
            return count >= RunLoop.blocksPerTurn || now >= end
        }
    }
}
