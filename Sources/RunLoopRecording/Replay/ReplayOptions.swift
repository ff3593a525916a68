internal import Glibc

/// The end of a replay, and its handlers. A `Sendable` value.
public struct ReplayOptions: Sendable {
    /// Called on a thread that makes a request other than the recorded one, at that request. Traps with the divergence
    /// by default, so that a debugger and the backtrace show the place in the program.
    public var onDivergence: @Sendable (Divergence) -> Never = { fatalError("\($0)") }
    /// Called at the end of the record, or at the limit. By default, writes the reason to standard error and ends the
    /// process: with status 0 at the limit and at the end of a complete record, and with 65 (`EX_DATAERR`) if the
    /// record stops before its program, see ``RecordEnd``.
    public var onEnd: @Sendable (ReplayEnd) -> Never = { end in
        _ = "\(end)\n".withCString { write(STDERR_FILENO, $0, strlen($0)) }
        exit(end.status)
    }
    /// The event before which the replay ends; `nil` for none. The record must have this event.
    public var until: Position?

    /// Creates options for a replay of the whole record.
    public init() {}
}
