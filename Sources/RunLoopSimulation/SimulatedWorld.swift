internal import RunLoopCore

/// The world of a simulation: its threads share a timeline.
final class SimulatedWorld: World {
    let timeline: Timeline
    let shared = SharedLocals()

    /// - Parameter numbers: what the world's random numbers are.
    init(timeline: Timeline, numbers: SeededNumbers) {
        self.timeline = timeline
        let numbers = Locked(numbers)
        RunLoop.RandomNumbers.source.set({ numbers.withLock { $0.next() } }, in: self)
    }

    var isVirtual: Bool { true }

    var wallTime: RunLoop.WallTime { timeline.wallTime }

    func instant(of time: RunLoop.WallTime) -> RunLoop.Instant { timeline.instant(of: time) }

    func makeSeat(named name: String, isService: Bool) -> any Seat {
        VirtualSeat(owner: self, index: timeline.enter(named: name, isService: isService))
    }

    func makeLatch(openedBy waker: any Waker) -> any Latch {
        let opener = waker as? VirtualWaker
        return VirtualLatch(
            timeline: timeline,
            state: .init(
                index: RunLoop.installed?.virtualDriver?.index ?? 0, opener: opener?.index ?? 0,
                isOutside: opener?.timeline !== timeline))
    }
}

/// A latch at which a thread rests in virtual time.
private struct VirtualLatch: Latch {
    let timeline: Timeline
    let state: Timeline.LatchState

    func open() {
        timeline.open(state)
    }

    func wait() -> Bool { timeline.wait(at: state) != .starved }
}

private struct VirtualSeat: Seat {
    let owner: SimulatedWorld
    let index: Int

    var world: any World { owner }

    var waker: any Waker { VirtualWaker(timeline: owner.timeline, index: index) }

    func take() -> any Driver {
        owner.timeline.awaitTurn(index)
        return VirtualDriver(timeline: owner.timeline, index: index)
    }

    func leave() {
        owner.timeline.leave(index)
    }

    func join() {
        owner.timeline.join(index)
    }
}
