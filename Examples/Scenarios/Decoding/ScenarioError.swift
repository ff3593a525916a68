/// An error in a scenario, and its place.
///
/// The description is always one line: `timers[1].interval: expected a number, found a string`.
package struct ScenarioError: Error, CustomStringConvertible, Sendable {
    /// The path of the value in the file, such as `timers[1].interval`, or its line and column if the text is not JSON.
    package let place: String
    /// The error.
    package let reason: String

    /// The place and the reason, in one line.
    package var description: String { "\(place): \(reason)" }

    init(_ place: String, _ reason: String) {
        self.place = place
        self.reason = reason
    }
}
