internal import RunLoopCore
@_spi(Ports) internal import RunLoopSimulation

/// The events of one run of a simulation, and the choices among them. A `Sendable` value.
///
/// ``Exploration/trace(_:_:)`` returns a trace, and a finding has one of its failing run. A trace can be drawn, and
/// kept in a file.
public struct SimulationTrace: Sendable {
    /// The schedule of the run.
    public let token: ScheduleToken

    /// The fault of the run, if any.
    public let fault: Exploration.Fault?

    let trace: Trace

    init(_ trace: Trace, of token: ScheduleToken, _ fault: Exploration.Fault?) {
        (self.trace, self.token, self.fault) = (trace, token, fault)
    }

    /// A Boolean value that indicates whether the trace ends early because it became too long.
    public var isCut: Bool { trace.isCut }
}

extension SimulationTrace: CustomStringConvertible {
    /// The events and choices, one line each. O(n) in their number.
    public var description: String {
        trace.entries.map { entry in
            switch entry {
            case .event(let event): "\(event.date) \(event.lane): \(event.fullWords)"
            case .choice(let choice): "\(choice.date) \(choice.place)@\(choice.step): \(choice.outcome)"
            }
        }.joined(separator: "\n")
    }
}

extension TracedEvent {
    /// The words with the thread or the sender; for an event without a row, its kind.
    var fullWords: String {
        let words =
            switch kind {
            case .began: "begins"
            case .ended: "ends"
            case .renamed(let name): "is \(name) from now on"
            case .message(_, let sender): "\(self.words) from \(sender)"
            case .note, .call, .ignored: self.words
            }
        return (thread.map { "\($0): " } ?? "") + words
    }
}
