internal import CShims
internal import Glibc
package import RunLoopCore

/// Wakes a driver with an event descriptor, which lives as long as any thread may still write to it.
package final class EventWaker: Waker {
    let descriptor: Int32

    package init() {
        descriptor = rlk_eventfd()
        require(descriptor >= 0, "no descriptor left for the loop's wake-up (errno \(errno))")
    }

    deinit {
        close(descriptor)
    }

    package func wake() {
        var one: UInt64 = 1
        _ = write(descriptor, &one, 8)
    }

    package var now: RunLoop.Instant { MonotonicClock.now }
}
