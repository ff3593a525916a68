public import RunLoopCore

/// The record of one run: its events and the choices among them, in order. Made only on request.
///
/// A `Sendable` value.
@_spi(Ports) public struct Trace: Sendable, Hashable {
    /// The events and choices, in order; the index of a choice is its position among the events.
    public var entries: [Entry] = []

    /// `true` if later entries were lost.
    public var isCut = false

    public init() {}

    /// The events alone, in order.
    var events: some Sequence<Event> { entries.lazy.compactMap(\.event) }

    public enum Entry: Sendable, Hashable {
        case event(Event)
        case choice(Choice)

        public var event: Event? { if case .event(let event) = self { event } else { nil } }

        public var choice: Choice? { if case .choice(let choice) = self { choice } else { nil } }

        public var date: RunLoop.Instant {
            switch self {
            case .event(let event): event.date
            case .choice(let choice): choice.date
            }
        }
    }

    public struct Event: Sendable, Hashable {
        public enum Kind: Sendable, Hashable {
            /// The lane begins because its host now has a process.
            case began
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

        public let date: RunLoop.Instant
        /// The name of a host, of a task, or of one of the test's own threads.
        public let lane: String
        /// The thread of the event, if not the first thread of the lane.
        public let thread: String?
        /// The lane of the thread on which the task runs, for the lane of a task.
        public let owner: String?
        public let kind: Kind
        /// The words of the event in a picture, without the thread; empty for an event that has no row there.
        public let words: String
        /// The place in the program where the called item was made.
        public let place: Place?

        public init(
            date: RunLoop.Instant, lane: String, thread: String? = nil, owner: String? = nil, kind: Kind,
            words: String = "", place: Place? = nil
        ) {
            (self.date, self.lane, self.thread, self.owner) = (date, lane, thread, owner)
            (self.kind, self.words, self.place) = (kind, words, place)
        }
    }

    public struct Place: Sendable, Hashable, CustomStringConvertible {
        let file: String
        let line: Int

        public var description: String { "\(file):\(line)" }
    }

    /// A choice among several events that may legally happen next.
    public struct Choice: Sendable, Hashable {
        public enum Kind: String, Sendable, Hashable {
            case task, thread, event, possibility, fault, quantity
        }

        public let date: RunLoop.Instant
        public let kind: Kind
        /// The name of the place, as in a token.
        public let place: String
        /// The number of earlier steps of the place, as in a token.
        public let step: Int
        /// The names of the possible choices, all different; none for a random quantity.
        public let names: [String]
        /// The possible choices.
        public let range: ClosedRange<Int>
        public let usual: Int
        public let chosen: Int

        public var isDeparture: Bool { chosen != usual }

        /// `true` if the choice is among tasks, threads or events, and not among possibilities.
        public var isAmongLanes: Bool { kind == .task || kind == .thread || kind == .event }

        /// The name of a choice. O(1).
        public func name(of choice: Int) -> String { kind == .quantity ? "\(choice)" : names[choice] }
    }
}

@_spi(Ports) extension Trace.Choice {
    /// The record of a choice at a point of a run.
    public init(of chosen: Int, at point: ChoicePoint, on date: RunLoop.Instant) {
        self.init(
            date: date, kind: Kind(point.kind), place: point.place, step: point.step, names: point.names,
            range: point.range, usual: point.usual, chosen: chosen)
    }
}

extension Trace.Choice.Kind {
    fileprivate init(_ kind: ChoicePoint.Kind) {
        self =
            switch kind {
            case .task: .task
            case .thread: .thread
            case .event: .event
            case .possibility: .possibility
            case .fault: .fault
            case .quantity: .quantity
            }
    }
}

/// A message from one host to another, or its loss.
@_spi(Ports) public enum HostMessage: Sendable, Hashable {
    case bytes(Int)
    case end
    /// Bytes that found no way and are sent again.
    case lost(Int)
}
