internal import RunLoopCore
@_spi(Ports) internal import RunLoopSimulation

/// The record of one run: its events and the choices among them, in order. Made only on request.
struct Trace: Sendable, Hashable {
    /// The events and choices, in order; the index of a choice is its position among the events.
    var entries: [Entry] = []

    /// `true` if later entries were lost.
    var isCut = false

    enum Entry: Sendable, Hashable {
        case event(TracedEvent)
        case choice(Choice)

        var event: TracedEvent? { if case .event(let event) = self { event } else { nil } }

        var choice: Choice? { if case .choice(let choice) = self { choice } else { nil } }

        var date: RunLoop.Instant {
            switch self {
            case .event(let event): event.date
            case .choice(let choice): choice.date
            }
        }
    }

    /// A choice among several events that may legally happen next.
    struct Choice: Sendable, Hashable {
        enum Kind: String, Sendable, Hashable {
            case task, thread, event, possibility, fault, quantity
        }

        let date: RunLoop.Instant
        let kind: Kind
        /// The name of the place, as in a token.
        let place: String
        /// The number of earlier steps of the place, as in a token.
        let step: Int
        /// The names of the possible choices, all different; none for a random quantity.
        let names: [String]
        /// The possible choices.
        let range: ClosedRange<Int>
        let usual: Int
        let chosen: Int

        var isDeparture: Bool { chosen != usual }

        /// `true` if the choice is among tasks, threads or events, and not among possibilities.
        var isAmongLanes: Bool { kind == .task || kind == .thread || kind == .event }

        /// The name of a choice. O(1).
        func name(of choice: Int) -> String { kind == .quantity ? "\(choice)" : names[choice] }
    }
}

extension Trace.Choice {
    /// The record of a choice at a point of a run.
    init(of chosen: Int, at point: ChoicePoint, on date: RunLoop.Instant) {
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

/// An entry of a trace as a line of text, so that another process can read it. Tabs separate the fields of a line.
extension Trace.Entry: LosslessStringConvertible {
    var description: String {
        switch self {
        case .event(let event): event.description
        case .choice(let choice): choice.line
        }
    }

    /// Creates an entry from a line; `nil` if the line does not describe one.
    init?(_ line: String) {
        if let choice = Trace.Choice(line: line) {
            self = .choice(choice)
        } else if let event = TracedEvent(line) {
            self = .event(event)
        } else {
            return nil
        }
    }
}

extension Trace.Choice {
    fileprivate var line: String {
        let texts = [kind.rawValue, "\(date.nanoseconds)", place, "\(step)", "\(usual)", "\(chosen)"]
        return (texts + ["\(range.lowerBound)", "\(range.upperBound)"] + names).map(Lines.escaped)
            .joined(separator: "\t")
    }

    fileprivate init?(line: String) {
        let fields = line.split(separator: "\t", omittingEmptySubsequences: false)
        guard fields.count >= 8, let kind = Kind(rawValue: String(fields[0])), let nanoseconds = Int64(fields[1]),
            let place = String(unescaping: fields[2])
        else { return nil }
        let (numbers, names) = (fields[3..<8].compactMap { Int($0) }, fields[8...].compactMap(String.init(unescaping:)))
        guard numbers.count == 5, numbers[3] <= numbers[4], names.count == fields.count - 8 else { return nil }
        let range = numbers[3]...numbers[4]
        guard [numbers[1], numbers[2]].allSatisfy(kind == .quantity ? range.contains : names.indices.contains) else {
            return nil
        }
        self.init(
            date: RunLoop.Instant(nanoseconds: nanoseconds), kind: kind, place: place, step: numbers[0], names: names,
            range: range, usual: numbers[1], chosen: numbers[2])
    }
}

extension Trace {
    /// Returns the rows of a run, or of a part of it.
    static func rows(of entries: some Sequence<Entry>) -> Rows {
        Rows(
            entries.map { entry in
                switch entry {
                case .event(let event): .event(event)
                case .choice(let choice): .choice(isDeparture: choice.isDeparture)
                }
            })
    }
}
