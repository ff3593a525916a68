@_spi(Ports) import RunLoopCore
import Synchronization

/// Counts the wake-ups on their way to another waker.
final class CountingWaker: Waker {
    private let waker: any Waker
    private let wakes = Atomic(0)

    init(_ waker: any Waker) {
        self.waker = waker
    }

    var count: Int { wakes.load(ordering: .acquiring) }

    var now: RunLoop.Instant { waker.now }

    func wake() {
        wakes.add(1, ordering: .acquiringAndReleasing)
        waker.wake()
    }
}
