/// What is wrong with a scenario, and where.
///
/// The description is always one line: `timers[1].interval: expected a number, found a string`.
public struct ScenarioError: Error, CustomStringConvertible, Sendable {
    /// The path of the value in the file, such as `timers[1].interval`, or its line and column if it is not even JSON.
    public let place: String
    /// What is wrong there.
    public let reason: String

    /// The place and the reason, in one line.
    public var description: String { "\(place): \(reason)" }

    init(_ place: String, _ reason: String) {
        self.place = place
        self.reason = reason
    }
}
