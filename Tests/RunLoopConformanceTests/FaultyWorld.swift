@_spi(Ports) import RunLoopCore
@_spi(Ports) import RunLoopKit

/// The real world, with a fault.
final class FaultyWorld: World {
    enum Fault: String, CaseIterable {
        case isEarly = "a time of the wall clock is an instant, which is never early"
        case hasStoppedClock = "the wall clock advances while a thread waits"
        case seatsElsewhere = "a thread at a seat has a loop of the world, on its clock"
        case hasOpenLatches = "a latch keeps its thread until another one opens it"
        case forgetsValues = "a value of a world is made once, and its threads share it"
        case drawsOneNumber =
            "the random numbers of a world's threads differ, and are the same when a run is repeated"
        case decidesOtherwise = "a decision is taken as the thread takes it"
        case isVirtualOnly = "virtual time is held for an event outside; real time is not"
    }

    private let fault: Fault
    private let locals = SharedLocals()
    private let start = RunLoop.realWorld.wallTime
    private var real: any World { RunLoop.realWorld }

    init(_ fault: Fault) {
        self.fault = fault
        if fault == .drawsOneNumber { RunLoop.RandomNumbers.source.set({ 4 }, in: self) }
    }

    /// Calls `body` with a loop of the calling thread in a world with a fault.
    static func run(_ fault: Fault, _ body: (RunLoop) throws -> Void) throws {
        let seat = try RunLoop.realWorld.makeSeat(named: "test", isService: false)
        try body(RunLoop(driver: seat.take(), world: FaultyWorld(fault), remote: nil))
    }

    var isVirtual: Bool { fault == .isVirtualOnly }
    var wallTime: RunLoop.WallTime { fault == .hasStoppedClock ? start : real.wallTime }
    var shared: SharedLocals { fault == .forgetsValues ? SharedLocals() : locals }
    func instant(of time: RunLoop.WallTime) -> RunLoop.Instant {
        real.instant(of: fault == .isEarly ? time - .seconds(1) : time)
    }
    func decides(_ decision: Bool) -> Bool { decision != (fault == .decidesOtherwise) }
    func makeLatch(openedBy waker: any Waker) -> any Latch {
        fault == .hasOpenLatches ? OpenLatch() : real.makeLatch(openedBy: waker)
    }
    func makeSeat(named name: String, isService: Bool) throws(RunLoop.StartError) -> any Seat {
        let seat = try real.makeSeat(named: name, isService: isService)
        return fault == .seatsElsewhere ? seat : SeatHere(world: self, real: seat)
    }
}

private struct OpenLatch: Latch {
    func open() {}
    func wait() -> Bool { true }
}

private struct SeatHere: Seat {
    let world: any World
    let real: any Seat

    var waker: any Waker { real.waker }
    func wasTaken(by thread: ThreadHandle) { real.wasTaken(by: thread) }
    func take() -> any Driver { real.take() }
    func leave() { real.leave() }
    func join() { real.join() }
}
