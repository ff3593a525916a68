extension RunLoop.Clock {
    /// Dates at equal distances, for a task: the counterpart of a repeating ``Timer`` for a callback.
    ///
    /// ```swift
    /// for try await tick in loop.clock.ticks(every: .seconds(60)) { poll(); late += tick.missed }
    /// ```
    ///
    /// The first tick comes an interval after the iteration was made, and the others keep to the dates that follow from
    /// it. A task that comes late, because it was busy or the loop ran in another mode, gets one tick for all dates
    /// that have passed. The tick tells how many it missed, and the next one is at the first date still to come. A tick
    /// never comes early. It is a sleep on this clock, in its modes: while no task waits, nothing is scheduled and the
    /// loop does not wake up; and a wait that is cancelled loses no tick. O(log n) each, without an allocation. Any
    /// thread.
    ///
    /// - Parameters:
    ///   - interval: the time between ticks. Zero or less is taken as 0.0001 s, and less than a nanosecond as a
    ///     nanosecond.
    ///   - tolerance: how much later a tick may come, so that the loop wakes up less often; none unless given. The dates
    ///     do not move. More than half of the interval is taken as that.
    public func ticks(every interval: Duration, tolerance: Duration = .zero) -> RunLoop.Ticks {
        let interval = interval > .zero ? interval : Timer.usualInterval
        return RunLoop.Ticks(clock: self, interval: interval, tolerance: min(max(.zero, tolerance), interval / 2))
    }
}

extension RunLoop {
    /// Dates at equal distances on a loop's clock, made by ``Clock/ticks(every:tolerance:)``. An iteration throws what
    /// ``Clock/sleep(until:tolerance:)`` throws, and does not end otherwise. A value and `Sendable`; any thread.
    public struct Ticks: AsyncSequence, Sendable {
        let clock: Clock
        let interval: Duration
        let tolerance: Duration

        /// An iteration, which begins now.
        public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self) }

        /// One or more dates that have come. A value and `Sendable`.
        public struct Element: Sendable, Hashable {
            /// The first date that had come and was not delivered before.
            public let date: Instant
            /// How many dates after it had come as well.
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
