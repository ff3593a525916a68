internal import Glibc
@_spi(Ports) package import RunLoopCore

/// The real world: its threads wait with libevent, and its clocks are the system's. There is one for the process.
final class RealWorld: World {
    static let shared = RealWorld()

    private init() {}

    var isVirtual: Bool { false }

    var wallTime: RunLoop.WallTime {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return RunLoop.WallTime(secondsSince1970: Int64(time.tv_sec)) + .nanoseconds(time.tv_nsec)
    }

    /// Converts by the present difference of the clocks, whose rates time servers adjust alike. Any other change of
    /// their difference is reported to loops that watch the clock.
    func instant(of time: RunLoop.WallTime) -> RunLoop.Instant {
        // Read first: an instant that is a little late is never early.
        let wallTime = wallTime
        return MonotonicClock.now + (time - wallTime)
    }

    func makeSeat(named name: String, isService: Bool) throws(RunLoop.StartError) -> any Seat {
        try RealSeat()
    }

    func makeLatch(openedBy waker: any Waker) -> any Latch { RealLatch() }

    let shared = SharedLocals()
}

/// The real world, whose threads wait with libevent.
package var libeventWorld: any World { RealWorld.shared }

/// The clock of all real loops.
enum MonotonicClock {
    static var now: RunLoop.Instant {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return RunLoop.Instant(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }
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
    private let eventWaker: EventWaker
    /// The driver until the thread takes it; made in the initializer, which throws if the system refuses it.
    private let driver: Locked<LibeventDriver?>

    init() throws(RunLoop.StartError) {
        eventWaker = try EventWaker()
        driver = Locked(try LibeventDriver(waker: eventWaker))
    }

    var world: any World { RealWorld.shared }

    var waker: any Waker { eventWaker }

    func wasTaken(by thread: ThreadHandle) {}

    func take() -> any Driver { driver.withLock { $0.take() }! }

    func leave() {}

    /// Does nothing: a thread of the real world is joined as a thread.
    func join() {}
}

extension RunLoop {
    /// Creates a loop of the calling thread in the real world, perhaps with a waker and a remote that were handed out
    /// before.
    package static func real(waker: EventWaker? = nil, remote: Remote? = nil) -> RunLoop {
        let driver = started { () throws(StartError) in
            if let waker { try LibeventDriver(waker: waker) } else { try LibeventDriver(waker: EventWaker()) }
        }
        return RunLoop(driver: driver, world: RealWorld.shared, remote: remote)
    }
}
