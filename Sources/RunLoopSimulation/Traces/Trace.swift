package import RunLoopCore

/// The record of one run: its events and the choices among them, in order. Made only on request.
///
/// A `Sendable` value.
package struct Trace: Sendable, Hashable {
    /// The events and choices, in order; the index of a choice is its position among the events.
    package var entries: [Entry] = []

    /// `true` if later entries were lost.
    package var isCut = false

    package init() {}

    /// The events alone, in order.
    package var events: some Sequence<Event> { entries.lazy.compactMap(\.event) }

    package enum Entry: Sendable, Hashable {
        case event(Event)
        case choice(Choice)

        package var event: Event? { if case .event(let event) = self { event } else { nil } }

        package var choice: Choice? { if case .choice(let choice) = self { choice } else { nil } }

        package var date: RunLoop.Instant {
            switch self {
            case .event(let event): event.date
            case .choice(let choice): choice.date
            }
        }
    }

    package struct Event: Sendable, Hashable {
        package enum Kind: Sendable, Hashable {
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

        package let date: RunLoop.Instant
        /// The name of a host, of a task, or of one of the test's own threads.
        package let lane: String
        /// The thread of the event, if not the first thread of the lane.
        package let thread: String?
        /// The lane of the thread on which the task runs, for the lane of a task.
        package let owner: String?
        package let kind: Kind
        /// The words of the event in a picture, without the thread; empty for an event that has no row there.
        package let words: String
        /// The place in the program where the called item was made.
        package let place: Place?

        package init(
            date: RunLoop.Instant, lane: String, thread: String? = nil, owner: String? = nil, kind: Kind,
            words: String = "", place: Place? = nil
        ) {
            (self.date, self.lane, self.thread, self.owner) = (date, lane, thread, owner)
            (self.kind, self.words, self.place) = (kind, words, place)
        }
    }

    package struct Place: Sendable, Hashable, CustomStringConvertible {
        package let file: String
        package let line: Int

        package var description: String { "\(file):\(line)" }
    }

    /// A choice among several events that may legally happen next.
    package struct Choice: Sendable, Hashable {
        package enum Kind: String, Sendable, Hashable {
            case task, thread, event, possibility, fault, quantity
        }

        package let date: RunLoop.Instant
        package let kind: Kind
        /// The name of the place, as in a token.
        package let place: String
        /// The number of earlier steps of the place, as in a token.
        package let step: Int
        /// The names of the possible choices, all different; none for a random quantity.
        package let names: [String]
        /// The possible choices.
        package let range: ClosedRange<Int>
        package let usual: Int
        package let chosen: Int

        package var isDeparture: Bool { chosen != usual }

        /// `true` if the choice is among tasks, threads or events, and not among possibilities.
        package var isAmongLanes: Bool { kind == .task || kind == .thread || kind == .event }

        /// The name of a choice. O(1).
        package func name(of choice: Int) -> String { kind == .quantity ? "\(choice)" : names[choice] }
    }
}

extension Trace.Choice {
    /// The record of a choice at a point of a run.
    package init(of chosen: Int, at point: ChoicePoint, on date: RunLoop.Instant) {
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
package enum HostMessage: Sendable, Hashable {
    case bytes(Int)
    case end
    /// Bytes that found no way and are sent again.
    case lost(Int)
}
