internal import CRecording
internal import Glibc
public import RunLoopCore
internal import RunLoopKit
internal import RunLoopUnix

/// How much of a run is recorded, and where it stops. A value and `Sendable`.
public struct RecordingOptions: Sendable, Hashable {
    /// The bytes that the record may have, all parts together. At the limit the recording stops, and the program goes on.
    public var limit = Int.max
    /// The bytes of a part: behind them the record goes on in `PATH.2`, `PATH.3` and so on. A replay needs all of them.
    public var partSize = Int.max
    /// Whether the bytes that the program receives and reads are kept. Without them the record has their lengths and digests:
    /// it shows what happened, and a replay ends where the program reads.
    public var keepsPayloads = true

    /// Everything, without a limit.
    public init() {}

    /// The bytes of a chunk: the memory that each thread has of the record.
    package var chunkSize = 256 * 1024
}

/// Runs `body` and records all that the world answers it, so that ``withReplay(of:options:_:)`` can run it again.
///
/// Meanwhile the calling thread has another loop, which `body` is given and which is `RunLoop.current` and `RunLoop.main`.
/// Recorded are the readings of clocks, the readiness of descriptors, the results of calls and the bytes that they read, names,
/// children, signals, files, random numbers, and the order of mail between the loops of `body`: of the calling thread, and of
/// each `LoopThread` and `LoopGroup` that it starts. Record from the beginning of the program, before anything of it is made.
///
/// ```swift
/// try withRecording(to: "/var/log/daemon/record") { loop in
///     try serve(on: loop)
/// }
/// ```
///
/// The record is written into a mapped file, so that it is complete whichever way the process ends. The file has the mode 600,
/// and replaces one that was there: it has whatever the program has read. While a program is recorded, the order of a `Set` or
/// `Dictionary` depends on its contents and on the process's seeds of hashing alone, and relays copy bytes through the process.
///
/// - Parameters:
///   - path: the file.
///   - options: a limit, and whether payloads are kept.
///   - body: called once, on this thread.
/// - Throws: ``RecordError`` if the file cannot be written; the error of `body`.
/// - Precondition: the thread's loop is none of a simulation, and is not recorded or replayed already.
@available(*, noasync, message: "a recording takes the place of the thread's loop; call it from a synchronous function")
public func withRecording<Result>(
    to path: String, options: RecordingOptions = RecordingOptions(), _ body: (RunLoop) throws -> Result
) throws -> Result {
    let file = try RecordFile(
        path, limit: options.limit, partSize: options.partSize, chunkSize: options.chunkSize,
        keepsPayloads: options.keepsPayloads, wallTime: RunLoop.realWorld.wallTime)
    return try withTapes(in: TapedWorld(recordingTo: file), body)
}

/// Where a replay stops, and what it does there. A value and `Sendable`.
public struct ReplayOptions: Sendable {
    /// An event of a thread.
    public struct Position: Sendable, Hashable {
        /// The number of the thread: 0 for the one that called ``withReplay(of:options:_:)``.
        public var thread: Int
        /// The number of its event, from 0.
        public var event: UInt64

        /// An event, on the first thread unless given.
        public init(event: UInt64, ofThread thread: Int = 0) {
            (self.thread, self.event) = (thread, event)
        }
    }

    /// Called on the thread that asks for something else than was recorded, where it does. It traps with the divergence unless
    /// replaced, so that a debugger and the backtrace show the place in the program.
    public var onDivergence: @Sendable (Divergence) -> Never = { fatalError("\($0)") }
    /// Called where the replay cannot or need not go on. It ends the process with status 0 unless replaced, and says so on
    /// standard error.
    public var onEnd: @Sendable (ReplayEnd) -> Never = { end in
        _ = "\(end)\n".withCString { write(STDERR_FILENO, $0, strlen($0)) }
        exit(0)
    }
    /// The event before which the replay ends; `nil` for none.
    public var until: Position?

    /// The whole record.
    public init() {}
}

/// Runs `body` again as it was recorded: all that it asks of the world is answered from the record.
///
/// Nothing is awaited, and no descriptor, child or file of the record exists; only output to descriptors 1 and 2 is written for
/// real. `body` must be the same as in ``withRecording(to:options:_:)``: at the first call that the record does not have there,
/// or has with other arguments, ``ReplayOptions/onDivergence`` is called. If the record ends before the program, because the
/// process ended there, ``ReplayOptions/onEnd`` is called.
///
/// A program that iterates over a `Set` or `Dictionary` does so in the recorded order: if this process hashes with other seeds,
/// its program is executed again, with the same arguments and the recorded seeds.
///
/// - Parameters:
///   - path: the file of the record.
///   - options: where to stop.
///   - body: called once, on this thread.
/// - Throws: ``RecordError`` if the file is no record; the error of `body`.
/// - Precondition: as for a recording.
@available(*, noasync, message: "a replay takes the place of the thread's loop; call it from a synchronous function")
public func withReplay<Result>(
    of path: String, options: ReplayOptions = ReplayOptions(), _ body: (RunLoop) throws -> Result
) throws -> Result {
    let contents = try RecordContents(path)
    let hashing = rlk_get_hashing()
    if contents.seeds != (hashing.seed0, hashing.seed1) {
        if hashing.is_given == 0 { rlk_execute_again(contents.seeds.0, contents.seeds.1) }
        throw RecordError.hashing(errno: hashing.is_given == 0 ? errno : 0)
    }
    rlk_make_hashing_repeatable()
    return try withTapes(in: TapedWorld(replaying: Replay(contents, options)), body)
}

private func withTapes<Result>(in world: TapedWorld, _ body: (RunLoop) throws -> Result) throws -> Result {
    require(Tape.current == nil, "this thread is recorded or replayed already; let that end first")
    require(RunLoop.installed?.isVirtual != true, "a simulation repeats its runs by itself; record outside of it")
    let seat = TapedSeat(
        world: world, real: RunLoop.realWorld.makeSeat(named: "main", isService: false),
        tape: world.makeTape(number: 0, named: "main"))
    let loop = RunLoop(driver: seat.take(), world: world)
    let previous = RunLoop.install(loop)
    RunLoop.mainRemotes.set(loop.remote, in: world)
    defer {
        loop.tearDown()
        world.letGo()
        RunLoop.install(previous)
        seat.leave()
    }
    return try body(loop)
}
