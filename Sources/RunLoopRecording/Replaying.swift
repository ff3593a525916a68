internal import CRecording
internal import Glibc
public import RunLoopCore

/// Runs `body` again as it was recorded: all that it asks of the world is answered from the record.
///
/// Nothing is awaited, and no descriptor, child or file of the record exists; only output to descriptors 1 and 2 is written for
/// real. `body` must be the same as in ``withRecording(to:options:_:)``: at the first call that the record does not have there,
/// or has with other arguments, ``ReplayOptions/onDivergence`` is called. If the record ends before the program, for example
/// because the process ended there, ``ReplayOptions/onEnd`` is called with the reason.
///
/// All bytes of the record are compared with its sums first, so that damage is not taken for a divergence: O(bytes).
///
/// A program that iterates over a `Set` or `Dictionary` does so in the recorded order: if this process hashes with other seeds,
/// its program is executed again, with the same arguments and the recorded seeds.
///
/// - Parameters:
///   - path: the file of the record.
///   - options: where to stop.
///   - body: called once, on this thread.
/// - Throws: ``RecordError`` if the file is no record, is damaged, or does not have the event at which the replay is to end;
///   the error of `body`.
/// - Precondition: as for a recording.
@available(*, noasync, message: "a replay takes the place of the thread's loop; call it from a synchronous function")
public func withReplay<Result>(
    of path: String, options: ReplayOptions = ReplayOptions(), _ body: (RunLoop) throws -> Result
) throws -> Result {
    let contents = try RecordContents(path)
    let hashing = rlk_get_hashing()
    if contents.seeds != (hashing.seed0, hashing.seed1) {
        throw RecordError.hashing(errno: hashing.is_given == 0 ? executeAgain(contents.seeds) : 0)
    }
    rlk_make_hashing_repeatable()
    try contents.verify(path, options.until)
    return try withTapes(in: TapedWorld(Tapes(.replays(Replay(contents, options)))), body)
}

/// Executes the program of this process again, with its arguments and these seeds. Returns the reason if that fails.
private func executeAgain(_ seeds: (UInt64, UInt64)) -> Int32 {
    let arguments = UnsafeBufferPointer(start: CommandLine.unsafeArgv, count: Int(CommandLine.argc)) + [nil]
    let text = "\(String(seeds.0, radix: 16)),\(String(seeds.1, radix: 16))"
    if setenv(RLK_HASHING_VARIABLE, text, 1) == 0 { execv("/proc/self/exe", arguments) }
    return errno
}
