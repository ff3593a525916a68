internal import Glibc
package import RunLoopCore

/// The real world: its threads wait with libevent, and its clocks are the system's. There is one for the process.
package final class RealWorld: World {
    package static let shared = RealWorld()

    private init() {}

    package var isVirtual: Bool { false }

    package var wallTime: Duration {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }

    package func makeSeat(named name: String, isService: Bool) -> any Seat { RealSeat() }

    package func makeLatch(openedBy waker: any Waker) -> any Latch { RealLatch() }

    package let shared = SharedLocals()
}

private struct RealLatch: Latch {
    private let handoff = Handoff()

    func open() {
        handoff.signal()
    }

    func wait() -> Bool {
        handoff.wait()
        return true
    }
}

private struct RealSeat: Seat {
    private let eventWaker = EventWaker()

    var world: any World { RealWorld.shared }

    var waker: any Waker { eventWaker }

    func take() -> any Driver { LibeventDriver(waker: eventWaker) }

    func leave() {}

    /// A thread of the real world is joined as a thread.
    func join() {}
}

extension RunLoop {
    /// A loop of the calling thread in the real world.
    ///
    /// - Parameters:
    ///   - waker: one that was handed out before, together with `remote`.
    package static func real(waker: EventWaker = EventWaker(), remote: Remote? = nil) -> RunLoop {
        RunLoop(driver: LibeventDriver(waker: waker), world: RealWorld.shared, remote: remote)
    }
}
