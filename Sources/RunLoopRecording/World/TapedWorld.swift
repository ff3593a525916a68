internal import Glibc
internal import RunLoopCore
internal import RunLoopKit
internal import RunLoopUnix
internal import Synchronization

/// The world of a program that is recorded, or replayed: each of its threads has a tape.
final class TapedWorld: World {
    private enum Mode {
        case records(RecordFile)
        case replays(Replay)
    }

    private let mode: Mode
    let shared = SharedLocals()
    /// The number of the thread that was made last.
    private let lastNumber = Atomic<UInt32>(0)

    private var real: any World { RunLoop.realWorld }

    var file: RecordFile? {
        if case .records(let file) = mode { file } else { nil }
    }

    var replay: Replay? {
        if case .replays(let replay) = mode { replay } else { nil }
    }

    var keepsPayloads: Bool {
        switch mode {
        case .records(let file): file.keepsPayloads
        case .replays(let replay): replay.contents.keepsPayloads
        }
    }

    convenience init(recordingTo file: RecordFile) {
        self.init(.records(file))
    }

    convenience init(replaying replay: Replay) {
        self.init(.replays(replay))
    }

    private init(_ mode: Mode) {
        self.mode = mode
        RunLoop.RandomNumbers.source.set({ [self] in randomNumber }, in: self)
        WorldSystem.calls.set(TapedSystem(self), in: self)
        HostResolver.lookups.set(TapedLookups(in: self), in: self)
    }

    /// Releases the objects that its threads have shared, which keep it.
    func letGo() {
        shared.removeAll()
    }

    // MARK: Tapes

    private func makeTape(number: UInt32, named name: String) -> Tape {
        let tape: Tape =
            switch mode {
            case .records(let file): RecordingTape(number: number, file)
            case .replays(let replay): ReplayingTape(number: number, named: name, replay)
            }
        replay?.threadBegan(number, at: (Tape.current as? ReplayingTape)?.lastTime ?? 0)
        return tape
    }

    /// Asks the world for something, with the tape of the calling thread.
    func call<Result>(
        _ kind: EventKind, _ arguments: [Argument], _ coding: Coding<Result>, _ ask: () -> Result
    ) -> Result {
        guard let tape = Tape.current else {
            return callWithoutTape(EventText.call(kind, Argument.encode(arguments)), ask)
        }
        return tape.call(kind, arguments, coding, ask)
    }

    func callWithoutTape<Result>(_ what: @autoclosure () -> String, _ ask: () -> Result) -> Result {
        if let replay { replay.foreignCall(what()) }
        file?.noteForeignCall()
        return ask()
    }

    // MARK: Answers

    var isVirtual: Bool { false }
    var isRepeatable: Bool { true }

    func decides(_ decision: Bool) -> Bool { Tape.current?.decides(decision) ?? decision }

    var wallTime: RunLoop.WallTime {
        // A thread without a tape only looks.
        guard let tape = Tape.current else { return replay?.contents.wallTime ?? real.wallTime }
        let nanoseconds = tape.call(.wallTime, [], .int) { Int(real.wallTime.nanoseconds) }
        return RunLoop.WallTime(nanoseconds: Int64(nanoseconds))
    }

    func instant(of time: RunLoop.WallTime) -> RunLoop.Instant {
        // Read first: an instant that is a little late is never early.
        let wallTime = wallTime
        return now + (time - wallTime)
    }

    /// The time on the clock of all its loops.
    var now: RunLoop.Instant {
        guard let tape = Tape.current else {
            return replay == nil ? RunLoop.Instant.ofMachine : RunLoop.Instant(nanoseconds: 0)
        }
        return tape.clock { .ofMachine }
    }

    private var randomNumber: UInt64 {
        var system = SystemRandomNumberGenerator()
        guard let tape = Tape.current else { return system.next() }
        return UInt64(bitPattern: Int64(tape.call(.randomNumber, [], .int) { Int(Int64(bitPattern: system.next())) }))
    }

    /// A number for one more thread.
    func takeNumber() -> UInt32 {
        lastNumber.add(1, ordering: .relaxed).newValue
    }

    // MARK: Threads

    func makeSeat(named name: String, isService: Bool) -> any Seat {
        // Threads that only watch others, or work for them, are no part of the program.
        guard !isService, let tape = Tape.current else { return real.makeSeat(named: name, isService: isService) }
        let number = tape.call(.makeThread, [.text(name)], .int) { Int(takeNumber()) }
        return makeSeat(of: UInt32(clamping: number), named: name)
    }

    /// The seat of a thread with a tape.
    func makeSeat(of number: UInt32, named name: String) -> TapedSeat {
        let seat = replay == nil ? real.makeSeat(named: name, isService: false) : nil
        return TapedSeat(world: self, real: seat, tape: makeTape(number: number, named: name))
    }

    func makeLatch(openedBy waker: any Waker) -> any Latch {
        let latch = real.makeLatch(openedBy: waker)
        guard let replay, let tape = Tape.current else { return latch }
        return ReplayedLatch(real: latch, signal: ReplayedSignal(replay.turns), waiter: tape.number)
    }
}

extension RunLoop.Instant {
    /// The time on the system's clock, which is that of all real loops.
    static var ofMachine: RunLoop.Instant {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return RunLoop.Instant(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }
}
