import RunLoopKit
import Scenarios
import Synchronization

/// The place of a scenario, if there are several.
struct ScenarioPlace: CustomStringConvertible {
    let input: String
    let line: Int

    var description: String { "\(escaped(input)), line \(line)" }
}

/// Prints the events of a scenario as JSON: a line for each, or, if there are several scenarios, one line for all,
/// which names the place of the scenario.
final class EventPrinter: Sendable {
    private let place: ScenarioPlace?
    private let hasBegun = Mutex(false)

    init(_ place: ScenarioPlace?) {
        self.place = place
    }

    /// Prints an event. Any thread, but one at a time.
    @Sendable
    func print(_ event: ScenarioEvent) {
        guard let place else { return Swift.print(event.json) }
        hasBegun.withLock { hasBegun in
            let head = "{\"input\":\(quoted(place.input)),\"line\":\(place.line),\"events\":["
            Swift.print((hasBegun ? "," : head) + event.json, terminator: "")
            hasBegun = true
        }
    }

    func end() {
        if place != nil { Swift.print("]}") }
    }
}
