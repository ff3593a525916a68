internal import CRecording
internal import Glibc
public import RunLoopCore

/// The end of a replay, and its handlers. A value and `Sendable`.
public struct ReplayOptions: Sendable {
    /// An event of a thread.
    public struct Position: Sendable, Hashable, LosslessStringConvertible {
        /// The number of the thread. The thread that called ``withReplay(of:options:_:)`` is 0.
        public var thread: Int
        /// The number of its event, from 0.
        public var event: UInt64

        /// An event, on the first thread unless given.
        public init(event: UInt64, ofThread thread: Int = 0) {
            (self.thread, self.event) = (thread, event)
        }

        /// An event as `1234`, or as `2:1234` with the number of its thread.
        public init?(_ description: String) {
            let parts = description.split(separator: ":", omittingEmptySubsequences: false)
            guard parts.count <= 2, let event = parts.last.flatMap({ UInt64($0) }) else { return nil }
            guard let thread = parts.count == 2 ? Int(parts[0]) : 0, thread >= 0 else { return nil }
            self.init(event: event, ofThread: thread)
        }

        public var description: String { "\(thread):\(event)" }
    }

    /// Called on the thread that asks for something else than was recorded, where it does. It traps with the divergence unless
    /// replaced, so that a debugger and the backtrace show the place in the program.
    public var onDivergence: @Sendable (Divergence) -> Never = { fatalError("\($0)") }
    /// Called at the end of the record, or at the limit. Unless replaced, it writes the reason to standard error and ends the
    /// process with status 0.
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
