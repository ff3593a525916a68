@_spi(Ports) internal import RunLoopCore
@_spi(Ports) internal import RunLoopKit
@_spi(Ports) internal import RunLoopUnix

/// The world of a recorded or replayed program, in which each thread has a tape.
final class TapedWorld: World {
    private let tapes: Tapes
    let shared = SharedLocals()

    private var real: any World { RunLoop.realWorld }

    init(_ tapes: Tapes) {
        self.tapes = tapes
        RunLoop.RandomNumbers.source.set({ Self.randomNumber() }, in: self)
        WorldSystem.calls.set(TapedSystem(tapes), in: self)
        HostResolver.lookups.set(TapedLookups(tapes), in: self)
    }

    // MARK: Answers

    var isVirtual: Bool { false }
    var isRepeatable: Bool { true }
    var isReplay: Bool { tapes.replay != nil }

    func decides(_ decision: Bool) -> Bool { Tape.current?.decides(decision) ?? decision }

    var now: RunLoop.Instant { tapes.now }

    var wallTime: RunLoop.WallTime {
        // A thread without a tape only looks.
        guard let tape = Tape.current else { return tapes.replay?.contents.wallTime ?? real.wallTime }
        let nanoseconds = tape.call(.wallTime, [], .int) { Int(real.wallTime.nanoseconds) }
        return RunLoop.WallTime(nanoseconds: Int64(nanoseconds))
    }

    func instant(of time: RunLoop.WallTime) -> RunLoop.Instant {
        // Read first: an instant that is a little late is never early.
        let wallTime = wallTime
        return now + (time - wallTime)
    }

    private static func randomNumber() -> UInt64 {
        var system = SystemRandomNumberGenerator()
        guard let tape = Tape.current else { return system.next() }
        return UInt64(bitPattern: Int64(tape.call(.randomNumber, [], .int) { Int(Int64(bitPattern: system.next())) }))
    }

    // MARK: Threads

    func makeSeat(named name: String, isService: Bool) throws(RunLoop.StartError) -> any Seat {
        // Threads that only watch others, or work for them, are no part of the program.
        guard !isService, let tape = Tape.current else { return try real.makeSeat(named: name, isService: isService) }
        let number = tape.call(.makeThread, [.text(name)], .int) { Int(tapes.takeNumber()) }
        return makeSeat(of: UInt32(clamping: number), named: name)
    }

    /// Makes the seat of a thread with a tape. A refusal ends a recording: it is on no tape.
    func makeSeat(of number: UInt32, named name: String) -> TapedSeat {
        let seat =
            tapes.replay == nil
            ? started { [real] () throws(RunLoop.StartError) in
                try real.makeSeat(named: name, isService: false)
            } : nil
        return TapedSeat(in: self, real: seat, tapes.makeTape(number: number, named: name), of: tapes)
    }

    func makeLatch(openedBy waker: any Waker) -> any Latch {
        let latch = real.makeLatch(openedBy: waker)
        guard let replay = tapes.replay, let tape = Tape.current else { return latch }
        return ReplayedLatch(real: latch, signal: ReplayedSignal(replay.turns), waiter: tape.number)
    }
}
