internal import Glibc

/// The end of a replay, and its handlers. A `Sendable` value.
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
    /// process: with status 0 at the limit and at the end of a complete record, and with 65 (`EX_DATAERR`) if the record stops
    /// before its program, see ``RecordEnd``.
    public var onEnd: @Sendable (ReplayEnd) -> Never = { end in
        _ = "\(end)\n".withCString { write(STDERR_FILENO, $0, strlen($0)) }
        exit(end.status)
    }
    /// The event before which the replay ends; `nil` for none. It has to be one of the record's.
    public var until: Position?

    /// The whole record.
    public init() {}
}
