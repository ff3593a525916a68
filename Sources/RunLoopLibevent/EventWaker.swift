internal import CShims
internal import Glibc
package import RunLoopCore

/// Wakes a driver by an event descriptor, which lives as long as anybody may still write to it.
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

    package var now: RunLoop.Instant { LibeventDriver.now }
}

/// A real driver for a thread that is about to start.
package struct LibeventPeer: PeerDriver {
    private let eventWaker = EventWaker()

    package init() {}

    package var waker: any Waker { eventWaker }

    package func begin() -> any Driver { LibeventDriver(waker: eventWaker) }

    package func adopt(_ loop: RunLoop) {}

    package func end() {}

    package func join() {}
}
