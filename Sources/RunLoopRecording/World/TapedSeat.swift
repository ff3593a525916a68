@_spi(Ports) internal import RunLoopCore

/// The seat of a thread with a tape.
struct TapedSeat: Seat {
    let world: any World
    private let tapes: Tapes
    /// The real seat; `nil` in a replay, which waits for nothing.
    private let real: (any Seat)?
    // Unsafe, because a tape is not `Sendable`: it is handed to the thread, its only user.
    private nonisolated(unsafe) let tape: Tape
    /// The signal that the thread has left; `nil` in a recording.
    private let end: ReplayedSignal?

    init(in world: any World, real: (any Seat)?, _ tape: Tape, of tapes: Tapes) {
        (self.world, self.real, self.tape, self.tapes) = (world, real, tape, tapes)
        end = tapes.replay.map { ReplayedSignal($0.turns) }
    }

    var waker: any Waker { TapedWaker(real: real?.waker, mail: TapedMail(tapes: tapes, receiver: tape.number)) }

    func wasTaken(by thread: ThreadHandle) { real?.wasTaken(by: thread) }

    func take() -> any Driver {
        Tape.current = tape
        return TapedDriver(real?.take(), tape, waker)
    }

    func leave() {
        tape.end()
        Tape.current = nil
        real?.leave()
        end?.give()
    }

    func join() {
        if let tape = Tape.current { end?.willWait(tape.number) }
        real?.join()
    }
}
