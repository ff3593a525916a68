/// An event in an experiment.
struct Observation: Sendable, Equatable {
    /// Nanoseconds from the start.
    let t: Int64
    let event: String
}
