@_spi(Ports) internal import RunLoopKit
internal import Synchronization

/// A counter that calls a block when all of its ends have come.
final class AtLast: Sendable {
    private let block: @Sendable () -> Void
    private let left: Atomic<Int>

    init(_ count: Int, _ block: @escaping @Sendable () -> Void) {
        left = Atomic(count)
        self.block = block
    }

    func makeEnd() -> End { End(of: self) }

    /// An end, which comes by a call or else with its release, because a loop that ends drops its blocks.
    final class End: Sendable {
        private let whole: AtLast
        private let hasCome = Atomic(false)

        fileprivate init(of whole: AtLast) {
            self.whole = whole
        }

        deinit {
            come()
        }

        func come() {
            guard !hasCome.exchange(true, ordering: .relaxed) else { return }
            // In a replay, the thread that came last in the recorded run calls the block.
            assert(whole.left.load(ordering: .relaxed) > 0, "more has come than was waited for")
            let isLast = whole.left.subtract(1, ordering: .acquiringAndReleasing).newValue == 0
            if RunLoop.currentWorld.decides(isLast) { whole.block() }
        }
    }
}
