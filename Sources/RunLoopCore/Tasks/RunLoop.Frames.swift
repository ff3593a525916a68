extension RunLoop.Clock {
    /// Returns frames of a software display, for a task: the counterpart of a ``DisplayLink`` for a callback.
    ///
    /// ```swift
    /// for try await frame in loop.clock.frames() { draw(at: frame.targetTimestamp) }
    /// ```
    ///
    /// The first frame is the first to begin after the iteration was made, and the others follow at the link's rate. If
    /// the task comes late, because it was busy or the loop ran in another mode, it gets at once the newest frame that
    /// has begun, with the number of frames lost before it. So the target is always still to come. A frame never comes
    /// early. Waiting for a frame is a sleep on this clock, in its modes: while no task waits, nothing is scheduled and
    /// the loop does not wake up; and a cancelled wait loses no frame. O(log n) each, without an allocation. Any
    /// thread.
    ///
    /// - Parameters:
    ///   - frameClock: the clock whose frames come.
    ///   - preferredFrameRateRange: the preferred rates, as ``DisplayLink/preferredFrameRateRange``: every n-th frame
    ///     comes, with the n that suits them best. The default is every frame.
    public func frames(
        of frameClock: FrameClock = FrameClock(), preferredFrameRateRange: FrameRateRange = .default
    ) -> RunLoop.Frames {
        RunLoop.Frames(
            clock: self, frameClock: frameClock,
            divisor: preferredFrameRateRange.divisor(for: frameClock.framesPerSecond))
    }
}

extension RunLoop {
    /// The frames on a loop's clock, made by ``Clock/frames(of:preferredFrameRateRange:)``. An iteration throws the
    /// errors of ``Clock/sleep(until:tolerance:)``, and does not end otherwise. A value and `Sendable`; any thread.
    public struct Frames: AsyncSequence, Sendable {
        let clock: Clock
        let frameClock: FrameClock
        let divisor: Int64

        /// Creates an iteration, which begins now.
        public func makeAsyncIterator() -> AsyncIterator {
            AsyncIterator(frames: self, due: frameClock.frame(after: clock.now))
        }

        /// A frame that has begun. A value and `Sendable`.
        public struct Element: Sendable, Hashable {
            /// The date of the frame, not later than now.
            public let timestamp: Instant
            /// The date of the next frame at this rate, later than now when the frame came, to draw for.
            public let targetTimestamp: Instant
            /// The number of frames at this rate that have begun and were lost since the previous element.
            public let droppedFrames: Int
        }

        /// An iteration over frames. A value and `Sendable`.
        public struct AsyncIterator: AsyncIteratorProtocol, Sendable {
            fileprivate let frames: Frames
            /// The frame whose turn it is. Further turns are every n-th frame after it.
            fileprivate var due: Int64

            /// Waits until the next frame has begun, or not at all if it has. Any thread.
            ///
            /// - Throws: `CancellationError`; ``WaitError`` if the loop has ended.
            public mutating func next(isolation: isolated (any Actor)? = #isolation) async throws -> Element? {
                let (clock, frameClock, divisor) = (frames.clock, frames.frameClock, frames.divisor)
                try await clock.sleep(until: frameClock.date(of: due))
                let lost = (frameClock.frame(at: clock.now) - due) / divisor
                let frame = due + lost * divisor
                due = frame.saturatingAdding(divisor)
                return Element(
                    timestamp: frameClock.date(of: frame), targetTimestamp: frameClock.date(of: due),
                    droppedFrames: Int(lost))
            }
        }
    }
}
