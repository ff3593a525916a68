internal import CRecording
internal import Glibc
public import RunLoopCore

/// Runs `body` again as it was recorded: all its requests to the world are answered from the record.
///
/// The replay awaits nothing, and no descriptor, child or file of the record exists; only output to descriptors 1 and 2
/// is written for real. `body` must be the same as in ``withRecording(to:options:_:)``: ``ReplayOptions/onDivergence``
/// is called at the first call that the record does not have there, or has with other arguments. If the record ends
/// before the program, for example because the process ended there, ``ReplayOptions/onEnd`` is called with the reason.
///
/// All bytes of the record are compared with its sums first, so that damage is not taken for a divergence: O(bytes).
///
/// A program that iterates over a `Set` or `Dictionary` does so in the recorded order: if this process hashes with other seeds,
/// its program is executed again, with the same arguments and the recorded seeds.
///
/// - Parameters:
///   - path: the file of the record.
///   - options: the event at which to stop, and handlers.
///   - body: called once, on this thread.
/// - Throws: ``RecordError`` if the file is no record, is damaged, or does not have the event at which to end the
///   replay; the error of `body`.
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

/// Executes the program of this process again, with its arguments and the given seeds. Returns the reason if that
/// fails.
private func executeAgain(_ seeds: (UInt64, UInt64)) -> Int32 {
    let arguments = UnsafeBufferPointer(start: CommandLine.unsafeArgv, count: Int(CommandLine.argc)) + [nil]
    let text = "\(String(seeds.0, radix: 16)),\(String(seeds.1, radix: 16))"
    if setenv(RLK_HASHING_VARIABLE, text, 1) == 0 { execv("/proc/self/exe", arguments) }
    return errno
}
