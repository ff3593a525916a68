internal import RunLoopKit
internal import Synchronization

/// Calls a block when the last of its ends is released.
final class AtLast: Sendable {
    private let block: @Sendable () -> Void
    private let left: Atomic<Int>

    init(_ count: Int, _ block: @escaping @Sendable () -> Void) {
        left = Atomic(count)
        self.block = block
    }

    /// One of the ends.
    func makeEnd() -> End { End(of: self) }

    final class End: Sendable {
        private let whole: AtLast

        fileprivate init(of whole: AtLast) {
            self.whole = whole
        }

        deinit {
            // The thread that came last in a recorded run calls the block in a replay, too.
            let isLast = whole.left.subtract(1, ordering: .acquiringAndReleasing).newValue == 0
            if RunLoop.currentWorld.decides(isLast) { whole.block() }
        }
    }
}
