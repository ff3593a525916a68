internal import Glibc

/// The end of a replay, and its handlers. A `Sendable` value.
public struct ReplayOptions: Sendable {
    /// An event of a thread.
    public struct Position: Sendable, Hashable, LosslessStringConvertible {
        /// The number of the thread; 0 is the thread that called ``withReplay(of:options:_:)``.
        public var thread: Int
        /// The number of the event on the thread, from 0.
        public var event: UInt64

        /// Creates the position of an event, on the first thread by default.
        public init(event: UInt64, ofThread thread: Int = 0) {
            (self.thread, self.event) = (thread, event)
        }

        /// Creates a position from a text such as `1234`, or `2:1234` with the number of the thread.
        public init?(_ description: String) {
            let parts = description.split(separator: ":", omittingEmptySubsequences: false)
            guard parts.count <= 2, let event = parts.last.flatMap({ UInt64($0) }) else { return nil }
            guard let thread = parts.count == 2 ? Int(parts[0]) : 0, thread >= 0 else { return nil }
            self.init(event: event, ofThread: thread)
        }

        public var description: String { "\(thread):\(event)" }
    }

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
