internal import Glibc
internal import RunLoopCore
internal import Synchronization

/// The tapes of all threads of a run, which is recorded or replayed. Any thread.
final class Tapes: Sendable {
    enum Mode {
        case records(RecordFile)
        case replays(Replay)
    }

    private let mode: Mode
    /// The number of the most recently made thread.
    private let lastNumber = Atomic<UInt32>(0)

    init(_ mode: Mode) {
        self.mode = mode
    }

    var replay: Replay? {
        if case .replays(let replay) = mode { replay } else { nil }
    }

    var keepsPayloads: Bool {
        switch mode {
        case .records(let file): file.options.keepsPayloads
        case .replays(let replay): replay.contents.keepsPayloads
        }
    }

    /// The coding of bytes that the program reads: all of them, or their digest.
    var payload: Coding<[UInt8]> { keepsPayloads ? .bytes : .digest }

    func takeNumber() -> UInt32 {
        lastNumber.add(1, ordering: .relaxed).newValue
    }

    /// Makes the tape of a thread that the calling one makes.
    func makeTape(number: UInt32, named name: String) -> Tape {
        switch mode {
        case .records(let file): return RecordingTape(number: number, file)
        case .replays(let replay):
            let maker = Tape.current as? ReplayingTape
            defer { replay.threadBegan(number, at: maker?.lastTime ?? 0) }
            return ReplayingTape(number: number, named: name, replay)
        }
    }

    /// Asks the world, with the tape of the calling thread.
    func call<Result>(
        _ kind: EventKind, _ arguments: [Argument], _ coding: Coding<Result>, _ ask: () -> Result
    ) -> Result {
        guard let tape = Tape.current else {
            return callWithoutTape(EventText.call(kind, Argument.encode(arguments)), ask)
        }
        return tape.call(kind, arguments, coding, ask)
    }

    func callWithoutTape<Result>(_ what: @autoclosure () -> String, _ ask: () -> Result) -> Result {
        switch mode {
        case .records(let file): file.noteForeignCall()
        case .replays(let replay): replay.foreignCall(what())
        }
        return ask()
    }

    /// Ends a replay without payloads where the program is about to see bytes that were read.
    func needPayload() {
        guard let replay, !keepsPayloads else { return }
        guard let tape = Tape.current as? ReplayingTape else {
            replay.options.onEnd(.withoutPayload(thread: "another thread", event: 0))
        }
        tape.lacksPayload()
    }

    /// The time on the clock of all loops.
    var now: RunLoop.Instant {
        guard let tape = Tape.current else { return replay == nil ? .ofMachine : RunLoop.Instant(nanoseconds: 0) }
        return tape.clock { .ofMachine }
    }
}

extension RunLoop.Instant {
    /// The time on the system's clock, which all real loops use.
    static var ofMachine: RunLoop.Instant {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return RunLoop.Instant(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }
}
