@_spi(Ports) package import RunLoopKit

/// The real world, but for its drivers.
package final class PollWorld: World {
    package static let shared = PollWorld()
    package let shared = SharedLocals()

    package var isVirtual: Bool { false }
    package var wallTime: RunLoop.WallTime { RunLoop.realWorld.wallTime }
    package func instant(of time: RunLoop.WallTime) -> RunLoop.Instant { RunLoop.realWorld.instant(of: time) }
    package func makeLatch(openedBy waker: any Waker) -> any Latch { RunLoop.realWorld.makeLatch(openedBy: waker) }
    package func makeSeat(named name: String, isService: Bool) throws(RunLoop.StartError) -> any Seat {
        PollSeat(pipe: try WakePipe())
    }

    /// Makes the loop of the main thread, whose further threads have such loops too.
    package static func begin() throws {
        let loop = RunLoop(driver: PollDriver(waker: try WakePipe()), world: shared, remote: nil)
        RunLoop.mainRemotes.set(loop.remote, in: shared)
        _ = RunLoop.install(loop)
    }
}

private struct PollSeat: Seat {
    let pipe: WakePipe

    var world: any World { PollWorld.shared }
    var waker: any Waker { pipe }
    func wasTaken(by thread: ThreadHandle) {}
    func take() -> any Driver { PollDriver(waker: pipe) }
    func leave() {}
    func join() {}
}
