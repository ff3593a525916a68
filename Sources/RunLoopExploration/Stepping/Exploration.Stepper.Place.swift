public import RunLoopCore
@_spi(Ports) internal import RunLoopSimulation

extension Exploration.Stepper {
    /// A place of a run: an event, a choice, or the end. A `Sendable` value.
    public struct Place: Sendable, Hashable {
        /// The number of earlier steps.
        public let position: Int

        /// The number of steps of the run.
        public let count: Int

        /// The virtual time of the place.
        public let time: RunLoop.Instant

        /// The event, the subject of the choice, or the result of the run.
        public let words: String

        /// The choice, if the place is one.
        public let choice: Choice?
    }

    /// A choice of a run. A `Sendable` value.
    public struct Choice: Sendable, Hashable {
        let record: Trace.Choice

        /// The name of the place, as in a token.
        public var place: String { record.place }
        /// The number of earlier steps of the place, as in a token.
        public var step: Int { record.step }
        /// The numbers of the options; for a random quantity, its possible values.
        public var options: ClosedRange<Int> { record.range }
        /// The option that is taken without a departure.
        public var usual: Int { record.usual }
        /// The option that this schedule takes.
        public var chosen: Int { record.chosen }
        /// A Boolean value that indicates whether this schedule departs here.
        public var isDeparture: Bool { record.isDeparture }

        /// Returns the name of an option, which no other option of this place has. O(1).
        ///
        /// - Precondition: `option` is one of ``options``.
        public func name(of option: Int) -> String { record.name(of: option) }
    }
}

extension Exploration.Stepper.Place {
    init(_ position: Int, in run: Run) {
        let entries = run.trace.entries
        (self.position, count) = (position, entries.count)
        guard position < entries.count else {
            time = entries.last?.date ?? RunLoop.Instant(nanoseconds: 0)
            words = "the end: \(run.fault.map { "\($0)" } ?? "the run has passed")"
            choice = nil
            return
        }
        time = entries[position].date
        switch entries[position] {
        case .event(let event): (words, choice) = (event.sentence, nil)
        case .choice(let record): (words, choice) = (record.question, Exploration.Stepper.Choice(record: record))
        }
    }
}

extension Exploration.Stepper.Place: CustomStringConvertible {
    /// A line for the place, and below it a line for each option. An arrow marks the option taken.
    public var description: String {
        let line = "\(position) of \(count)  \(time)  \(words)"
        return ([line] + (choice?.lines ?? []).map { "  \($0)" }).joined(separator: "\n")
    }
}

extension Exploration.Stepper.Choice {
    fileprivate var lines: [String] {
        if record.kind == .quantity {
            return [
                "▶ \(chosen), of \(options.lowerBound) to \(options.upperBound)\(chosen == usual ? "" : "; usually \(usual)")"
            ]
        }
        return options.map { option in
            "\(option == chosen ? "▶" : " ") \(option) \(name(of: option))\(option == usual ? " (usual)" : "")"
        }
    }
}

extension TracedEvent {
    /// The event with its lane.
    fileprivate var sentence: String {
        let lane = thread.map { "\(self.lane)/\($0)" } ?? self.lane
        return switch kind {
        case .began: "\(lane) begins"
        case .ended: "\(lane) ends"
        case .renamed(let name): "\(lane) is called \(name) from now on"
        case .note, .call, .ignored: "\(lane): \(words)"
        case .message(_, let sender): "\(sender) to \(lane): \(words)"
        }
    }
}

extension Trace.Choice {
    /// The question that the choice answers.
    fileprivate var question: String {
        let question =
            switch kind {
            case .task: "which task continues"
            case .thread: "which thread continues"
            case .event: "which event comes first"
            case .possibility: "which possibility"
            case .fault: "does it happen"
            case .quantity: "how much"
            }
        return "\(question)? \(place)@\(step)"
    }
}
