extension RunLoop.Clock {
    /// Returns dates at equal distances, for a task: the counterpart of a repeating ``Timer`` for a callback.
    ///
    /// ```swift
    /// for try await tick in loop.clock.ticks(every: .seconds(60)) { poll(); late += tick.missed }
    /// ```
    ///
    /// The first tick comes an interval after the iteration was made, and the others keep to the dates that follow from
    /// it. A task that comes late, because it was busy or the loop ran in another mode, gets one tick for all dates
    /// that have passed. The tick counts the dates missed, and the next one is at the first date still to come. A tick
    /// never comes early. Waiting for a tick is a sleep on this clock, in its modes: while no task waits, nothing is
    /// scheduled and the loop does not wake up; and a cancelled wait loses no tick. O(log n) each, without an
    /// allocation. Any thread.
    ///
    /// - Parameters:
    ///   - interval: the time between ticks. Zero or less counts as 0.0001 s, and less than a nanosecond as a
    ///     nanosecond.
    ///   - tolerance: the time by which a tick may come later, so that the loop wakes up less often. The default is
    ///     zero, and at most half of the interval counts. The dates do not move.
    public func ticks(every interval: Duration, tolerance: Duration = .zero) -> RunLoop.Ticks {
        let interval = interval > .zero ? interval : Timer.usualInterval
        return RunLoop.Ticks(clock: self, interval: interval, tolerance: min(max(.zero, tolerance), interval / 2))
    }
}

extension RunLoop {
    /// The dates at equal distances on a loop's clock, made by ``Clock/ticks(every:tolerance:)``. An iteration throws
    /// the errors of ``Clock/sleep(until:tolerance:)``, and does not end otherwise. A value and `Sendable`; any thread.
    public struct Ticks: AsyncSequence, Sendable {
        let clock: Clock
        let interval: Duration
        let tolerance: Duration

        /// Creates an iteration, which begins now.
        public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self) }

        /// One or more dates that have come. A value and `Sendable`.
        public struct Element: Sendable, Hashable {
            /// The first date that has come and was not delivered before.
            public let date: Instant
            /// The number of further dates that have come.
            public let missed: Int
        }

        /// An iteration over ticks. A value and `Sendable`.
        public struct AsyncIterator: AsyncIteratorProtocol, Sendable {
            private let clock: Clock
            private let tolerance: Duration
            private var grid: Grid
            private var fraction: Grid.Fraction?

            init(_ ticks: Ticks) {
                (clock, tolerance) = (ticks.clock, ticks.tolerance)
                (grid, fraction) = Grid.repeating(clock.now + ticks.interval, ticks.interval)
            }

            /// Waits until the next date has come, or not at all if it has. Any thread.
            ///
            /// - Throws: `CancellationError`; ``WaitError`` if the loop has ended.
            public mutating func next(isolation: isolated (any Actor)? = #isolation) async throws -> Element? {
                try await clock.sleep(until: grid.date, tolerance: tolerance)
                let date = grid.date
                let passed = grid.datesPassed(at: clock.now, fraction)
                grid.advance(by: passed.saturatingAdding(1), &fraction)
                return Element(date: date, missed: Int(passed))
            }
        }
    }
}
