import Scenarios

/// An event in an experiment.
struct Observation: Sendable, Equatable {
    /// Nanoseconds from the start.
    let t: Int64
    let event: String
    /// The mark of the event in the picture of a program; scenarios draw their own events.
    var mark: ScenarioEvent.Kind?
}
