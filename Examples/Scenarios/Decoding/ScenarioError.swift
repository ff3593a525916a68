/// What is wrong with a scenario, and where.
///
/// The description is always one line: `timers[1].interval: expected a number, found a string`.
package struct ScenarioError: Error, CustomStringConvertible, Sendable {
    /// The path of the value in the file, such as `timers[1].interval`, or its line and column if it is not even JSON.
    package let place: String
    /// What is wrong there.
    package let reason: String

    /// The place and the reason, in one line.
    package var description: String { "\(place): \(reason)" }

    init(_ place: String, _ reason: String) {
        self.place = place
        self.reason = reason
    }
}
