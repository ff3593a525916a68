internal import Synchronization

extension Timer {
    /// Stops its timer from any thread.
    ///
    /// Invalidating a timer from another thread is what Apple's documentation warns of, and a `Timer` does not compile
    /// there. This handle is the safe form: it takes effect at once for fires that have not begun, wakes the timer's
    /// loop, and lets the loop release the timer's target on its own thread.
    public final class Remote: Sendable {
        private let invalidated = Atomic(false)
        private let loop: Locked<RunLoop.Remote?>
        // Set once, here, and read only on the thread of the timer's loop, when the loop delivers the request.
        private nonisolated(unsafe) weak let timer: Timer?

        init(_ timer: Timer, loop: RunLoop.Remote?) {
            self.timer = timer
            self.loop = Locked(loop)
        }

        /// No fire begins once this has returned; the timer's target is released by the timer's loop soon after, in
        /// whatever mode it runs. A timer that is in no loop is released by its owner. Harmless when repeated.
        public func invalidate() {
            guard !invalidated.exchange(true, ordering: .acquiringAndReleasing) else { return }
            loop.withLock { $0 }?.performUrgently { _ in self.timer?.invalidate() }
        }

        /// Whether the timer has been invalidated, here or on its own thread.
        public var isInvalidated: Bool { invalidated.load(ordering: .acquiring) }

        func markInvalidated() {
            invalidated.store(true, ordering: .releasing)
        }

        func loopChanged(to remote: RunLoop.Remote?) {
            loop.withLock { $0 = remote }
        }
    }
}
