/// The events that a ``FlightRecorder`` has kept. A value and `Sendable`.
///
/// ```swift
/// let flight = try Flight(contentsOf: "/var/lib/daemon/flight")
/// print(flight)                // a report
/// print(flight.unfinished)     // the calls that were under way when the process ended, the innermost last
/// ```
public struct Flight: Sendable {
    /// A handler that was called, or a task that ran until it waited.
    public struct Handler: Sendable, Hashable, CustomStringConvertible {
        /// The handler's kind.
        public let kind: RunLoop.ItemKind
        /// The handler's name, if it has one.
        public let name: String?
        /// The place in the program where it was made, for example `Daemon/main.swift:12`.
        public let origin: String

        public var description: String { "\(kind)" + (name.map { " \"\($0)\"" } ?? "") + " (\(origin))" }
    }

    /// Why a sleep of the loop has ended.
    public enum ReasonToWake: Sendable, Hashable, CustomStringConvertible {
        /// A timer was due, or the run had reached its limit.
        case date
        /// A source's descriptor was ready; `nil` for a source that there was no room to name.
        case source(Handler?)
        /// Another thread has posted something. The name is the system's, of at most 15 bytes.
        case thread(String)
        /// None of these: for example a descriptor that was no longer watched.
        case other

        public var description: String {
            switch self {
            case .date: "a date"
            case .source(let handler): handler.map { "\($0)" } ?? "a source without a name"
            case .thread(let name): "the thread \"\(name)\""
            case .other: "something else"
            }
        }
    }

    /// Something that the loop did.
    public enum Event: Sendable, Hashable {
        /// A run in a mode began, or ended. Events within a call of a handler are nested in it.
        case runBegan(mode: String)
        case runEnded(mode: String)
        /// A handler was called; `nil` for one that there was no room to name.
        case callBegan(Handler?, mode: String)
        /// The call that has just begun is the effect with that number. If another thread has posted it, the name of that
        /// thread.
        case callHas(number: UInt64, thread: String?)
        /// The innermost call ended.
        case callEnded(duration: Duration)
        /// The loop woke up, after so long, for that reason.
        case slept(Duration, by: ReasonToWake)
        /// A block was posted, a timer was armed that fires once, a delayed call was requested, or a task was woken. The
        /// call that follows from it has the same number.
        case caused(Handler?, number: UInt64)
        /// A connection has moved bytes, by that descriptor; by 65535, if it is greater.
        case moved(Handler?, descriptor: Int32, received: Int, sent: Int)
    }

    /// An event with its time and depth.
    public struct Entry: Sendable, Hashable {
        /// When it happened, on the loop's clock.
        public let time: RunLoop.Instant
        /// The number of calls that it is nested in.
        public let depth: Int
        /// The event.
        public let event: Event
        /// For the call of a timer: how long after its date it began.
        public let lateness: Duration?
        /// For the poll of a task: the number of the task.
        public let task: UInt64?
    }

    /// The name of the loop.
    public let loop: String
    /// The number of the process.
    public let process: Int
    /// When recording began, on the loop's clock, and the wall clock's time then.
    public let begin: RunLoop.Instant
    public let wallTimeAtBegin: RunLoop.WallTime
    /// How many events came before those that are kept.
    public let lost: Int
    /// The events, in their order.
    public let entries: [Entry]
    /// How many events were written until now, lost ones too.
    package let end: Int
}
