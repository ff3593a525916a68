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
        /// The file and line that made the handler, for example `Daemon/main.swift:12`.
        public let origin: String

        public var description: String { kind.title(name, origin) }
    }

    /// The reason why a sleep of the loop has ended.
    public enum ReasonToWake: Sendable, Hashable, CustomStringConvertible {
        /// A timer was due, or the run had reached its limit.
        case date
        /// A source's descriptor was ready; `nil` for a source that there was no room to name.
        case source(Handler?)
        /// Another thread has posted something. The name is the system's, of at most 15 bytes.
        case thread(String)
        /// Another reason, for example a descriptor that was no longer watched.
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

    /// An event of the loop.
    public enum Event: Sendable, Hashable {
        /// A run in a mode began, or ended. Events within a call of a handler are nested in it.
        case runBegan(mode: String)
        case runEnded(mode: String)
        /// A handler was called; `nil` for a handler that there was no room to name.
        case callBegan(Handler?, mode: String)
        /// The call that has just begun is the effect with that number, posted by `thread` if that is another thread.
        case callHas(number: UInt64, thread: String?)
        /// The innermost call ended.
        case callEnded(duration: Duration)
        /// The loop woke up after a sleep of this duration, with this reason.
        case slept(Duration, by: ReasonToWake)
        /// A block was posted, a timer was armed that fires once, a delayed call was requested, or a task was woken.
        /// The call that follows from it has the same number.
        case caused(Handler?, number: UInt64)
        /// A connection has moved bytes by this descriptor; 65535 for greater ones.
        case moved(Handler?, descriptor: Int32, received: Int, sent: Int)
    }

    /// An event with its time and depth.
    public struct Entry: Sendable, Hashable {
        /// The time of the event, on the loop's clock.
        public let time: RunLoop.Instant
        /// The number of calls in which the event is nested.
        public let depth: Int
        /// The event.
        public let event: Event
        /// The time from a timer's date to the start of its call; `nil` for other events.
        public let lateness: Duration?
        /// The number of the polled task; `nil` for other events.
        public let task: UInt64?
    }

    /// The name of the loop.
    public let loop: String
    /// The number of the process.
    public let process: Int
    /// The start of the recording: on the loop's clock, and on the wall clock.
    public let begin: RunLoop.Instant
    public let wallTimeAtBegin: RunLoop.WallTime
    /// The number of events that came before the kept ones.
    public let lost: Int
    /// The events, in their order.
    public let entries: [Entry]
    /// The number of events written until now, including lost ones.
    @_spi(Ports) public let end: Int
}
