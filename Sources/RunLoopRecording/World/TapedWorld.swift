internal import Glibc
internal import RunLoopCore
internal import RunLoopKit
internal import RunLoopUnix

/// The world of a program that is recorded, or replayed: each of its threads has a tape.
final class TapedWorld: World {
    private enum Mode {
        case records(RecordFile)
        case replays(Replay)
    }

    private let mode: Mode
    let shared = SharedLocals()
    private let state = Locked(State())

    private struct State {
        var tapes: [Tape] = []
        /// The number of the next thread.
        var next: UInt32 = 1
    }

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
        RunLoop.RandomNumbers.source.set({ [unowned self] in randomNumber }, in: self)
        WorldSystem.calls.set(TapedSystem(self), in: self)
        HostResolver.lookups.set(TapedLookups(in: self), in: self)
    }

    /// Releases the objects that its threads have shared.
    func letGo() {
        shared.removeAll()
    }

    // MARK: Tapes

    func makeTape(number: UInt32, named name: String) -> Tape {
        let tape: Tape =
            switch mode {
            case .records(let file): RecordingTape(number: number, file)
            case .replays(let replay): ReplayingTape(number: number, named: name, replay)
            }
        replay?.threadBegan(number, at: (Tape.current as? ReplayingTape)?.lastTime ?? 0)
        state.withLock { $0.tapes.append(tape) }
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
        state.withLock { state in
            defer { state.next += 1 }
            return state.next
        }
    }

    // MARK: Threads

    func makeSeat(named name: String, isService: Bool) -> any Seat {
        let seat = real.makeSeat(named: name, isService: isService)
        // Threads that only watch others, or work for them, are no part of the program.
        guard !isService, let tape = Tape.current else { return seat }
        let number = tape.call(.makeThread, [.text(name)], .int) { Int(takeNumber()) }
        return TapedSeat(world: self, real: seat, tape: makeTape(number: UInt32(clamping: number), named: name))
    }

    func makeLatch(openedBy waker: any Waker) -> any Latch {
        let latch = real.makeLatch(openedBy: waker)
        guard let replay, let tape = Tape.current else { return latch }
        return ReplayedLatch(real: latch, signal: ReplayedSignal(replay.turns), waiter: tape.number)
    }
}

/// A latch at which a thread of a replay leaves its turn to others.
private struct ReplayedLatch: Latch {
    let real: any Latch
    let signal: ReplayedSignal
    let waiter: UInt32

    func open() {
        signal.give()
        real.open()
    }

    func wait() -> Bool {
        signal.await(waiter)
        return real.wait()
    }
}

/// Something that threads of a replay wait for and that is no event.
private final class ReplayedSignal: Sendable {
    private let turns: ReplayTurns
    /// Those who wait; `nil` when it has come.
    private let waiting = Locked<[UInt32]?>([])

    init(_ turns: ReplayTurns) {
        self.turns = turns
    }

    func give() {
        waiting.withLock { waiting in
            for thread in waiting ?? [] { turns.comesBack(thread) }
            waiting = nil
        }
    }

    /// The thread is about to wait for it.
    func await(_ thread: UInt32) {
        waiting.withLock { waiting in
            guard waiting != nil else { return }
            waiting!.append(thread)
            turns.goesAway(thread)
        }
    }
}

/// The seat of a thread with a tape.
struct TapedSeat: Seat {
    let owner: TapedWorld
    private let real: any Seat
    // Unsafe, because a tape is not Sendable: it is handed to the thread, which alone uses it.
    private nonisolated(unsafe) let tape: Tape
    /// In a replay: that the thread has left.
    private let end: ReplayedSignal?

    init(world: TapedWorld, real: any Seat, tape: Tape) {
        (owner, self.real, self.tape) = (world, real, tape)
        end = world.replay.map { ReplayedSignal($0.turns) }
    }

    var world: any World { owner }

    var waker: any Waker { TapedWaker(real: real.waker, mail: Mail(world: owner, receiver: tape.number)) }

    func wasTaken(by thread: ThreadHandle) { real.wasTaken(by: thread) }

    func take() -> any Driver {
        tape.install()
        return TapedDriver(real.take(), tape, waker)
    }

    func leave() {
        tape.end()
        Tape.uninstall()
        real.leave()
        end?.give()
    }

    func join() {
        if let tape = Tape.current { end?.await(tape.number) }
        real.join()
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
