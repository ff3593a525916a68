public import RunLoopCore

/// An event of a run, as it is recorded. A simulation with a listener calls it with each event, on the thread on which
/// the event happens; the listener may not use the simulation.
///
/// A `Sendable` value.
@_spi(Ports) public struct TracedEvent: Sendable, Hashable {
    /// The kinds of events.
    public enum Kind: Sendable, Hashable {
        /// The lane begins because its host now has a process.
        case began
        /// The lane ends because its host's process has ended.
        case ended
        /// The lane has another name from now on.
        case renamed(String)
        /// A note of the program, of a host, of a step of a task, or of a departure.
        case note
        /// A loop has called the handler of an item.
        case call
        /// A loop has ignored a request.
        case ignored
        /// A message has arrived from another host, or was lost.
        case message(HostMessage, from: String)
    }

    /// The virtual time of the event.
    public let date: RunLoop.Instant
    /// The name of a host, of a task, or of one of the test's own threads.
    public let lane: String
    /// The thread of the event, if not the first thread of the lane.
    public let thread: String?
    /// The lane of the thread on which the task runs, for the lane of a task.
    public let owner: String?
    /// The kind of the event.
    public let kind: Kind
    /// The words of the event in a picture, without the thread; empty for an event that has no row there.
    public let words: String
    /// The place in the program where the called item was made.
    public let place: Place?

    /// Creates an event from its parts.
    public init(
        date: RunLoop.Instant, lane: String, thread: String? = nil, owner: String? = nil, kind: Kind,
        words: String = "", place: Place? = nil
    ) {
        (self.date, self.lane, self.thread, self.owner) = (date, lane, thread, owner)
        (self.kind, self.words, self.place) = (kind, words, place)
    }

    /// A line of a source file.
    public struct Place: Sendable, Hashable, CustomStringConvertible {
        let file: String
        let line: Int

        /// The file and the line, for example `App/main.swift:12`.
        public var description: String { "\(file):\(line)" }
    }

    /// The lane from which a message was sent; `nil` for an event that is no message.
    public var sender: String? {
        if case .message(_, let sender) = kind { sender } else { nil }
    }

    /// `true` if the event is the loss of a message.
    public var isLost: Bool {
        if case .message(.lost, _) = kind { true } else { false }
    }

    /// The lanes that the event touches.
    var lanes: [String] { sender.map { [$0, lane] } ?? [lane] }
}

/// A message from one host to another, or its loss.
@_spi(Ports) public enum HostMessage: Sendable, Hashable {
    /// A number of bytes.
    case bytes(Int)
    /// The end of the sender's output.
    case end
    /// Bytes that found no way and are sent again.
    case lost(Int)
}
