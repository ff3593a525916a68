internal import Synchronization

extension DisplayLink {
    /// Stops its display link from any thread (R195).
    ///
    /// It takes effect at once for calls that have not begun, wakes the link's loop, and lets the loop release the
    /// link's target on its own thread.
    public final class Remote: Sendable {
        private let invalidated = Atomic(false)
        private let loop: Locked<RunLoop.Remote?>
        // Set once, here, and read only on the thread of the link's loop, when the loop delivers the request.
        private nonisolated(unsafe) weak let link: DisplayLink?

        init(_ link: DisplayLink, loop: RunLoop.Remote?) {
            self.link = link
            self.loop = Locked(loop)
        }

        /// No call begins once this has returned; the link's target is released by the link's loop soon after, in
        /// whatever mode it runs. A link that is in no loop is released by its owner. Harmless when repeated.
        public func invalidate() {
            guard !invalidated.exchange(true, ordering: .acquiringAndReleasing) else { return }
            loop.withLock { $0 }?.performUrgently { _ in self.link?.invalidate() }
        }

        /// Whether the link has been invalidated, here or on its own thread.
        public var isInvalidated: Bool { invalidated.load(ordering: .acquiring) }

        func markInvalidated() {
            invalidated.store(true, ordering: .releasing)
        }

        func loopChanged(to remote: RunLoop.Remote?) {
            loop.withLock { $0 = remote }
        }
    }
}
