internal import CShims
@_spi(Ports) public import RunLoopCore
@_spi(Ports) internal import RunLoopKit
internal import RunLoopUnix

/// Runs `body` and records all answers of the world to it, so that ``withReplay(of:options:_:)`` can run it again.
///
/// While `body` runs, the calling thread has another loop, which is passed to `body` and is `RunLoop.current` and
/// `RunLoop.main`. The record has the readings of clocks, the readiness of descriptors, the results of calls and the
/// bytes that they read, names, children, signals, files, random numbers, and the order of mail between the loops of
/// `body`: of the calling thread, and of each `LoopThread` and `LoopGroup` that it starts. Record from the beginning of
/// the program, before it makes any objects.
///
/// ```swift
/// try withRecording(to: "/var/log/daemon/record") { loop in
///     try serve(on: loop)
/// }
/// ```
///
/// The record is written into a mapped file, so that it is complete whichever way the process ends. The file is new and
/// has the mode 600, because it contains all that the program reads; a regular file with its name is removed first. If
/// the record stops before the program, at its limit or because the system has no room or another program has shortened
/// the file, the program continues, and a line on standard error says why. While a program is recorded, the order of a
/// `Set` or `Dictionary` depends on its contents and on the process's seeds of hashing alone, and relays copy bytes
/// through the process.
///
/// - Parameters:
///   - path: the file. Anything but a regular file there is left alone, and an error.
///   - options: the limits of the record, and the payloads to keep.
///   - body: called once, on this thread.
/// - Throws: ``RecordError`` if the file cannot be written; the error of `body`.
/// - Precondition: the thread's loop does not belong to a simulation, and is not recorded or replayed already.
@available(*, noasync, message: "a recording takes the place of the thread's loop; call it from a synchronous function")
public func withRecording<Result>(
    to path: String, options: RecordingOptions = RecordingOptions(), _ body: (RunLoop) throws -> Result
) throws -> Result {
    let file = try RecordFile(path, options, wallTime: RunLoop.realWorld.wallTime)
    defer { file.close() }
    return try withTapes(in: TapedWorld(Tapes(.records(file))), body)
}

func withTapes<Result>(in world: TapedWorld, _ body: (RunLoop) throws -> Result) throws -> Result {
    require(Tape.current == nil, "this thread is recorded or replayed already; end that first")
    require(RunLoop.installed?.isVirtual != true, "a simulation repeats its runs by itself; record outside of it")
    let seat = world.makeSeat(of: 0, named: "main")
    let loop = RunLoop(driver: seat.take(), world: world)
    let previous = RunLoop.install(loop)
    RunLoop.mainRemotes.set(loop.remote, in: world)
    // Threads that have no tape find the main thread's loop in the real world.
    let isMain = rlk_is_main_thread() != 0
    if isMain { RunLoop.mainRemotes.set(loop.remote, in: RunLoop.realWorld) }
    defer {
        if isMain { RunLoop.mainRemotes.set(nil, in: RunLoop.realWorld) }
        loop.tearDown()
        // The objects that the world's threads have shared keep the world.
        world.shared.removeAll()
        RunLoop.install(previous)
        seat.leave()
    }
    return try body(loop)
}
