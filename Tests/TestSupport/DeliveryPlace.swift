package import RunLoopKit
package import RunLoopSimulation
import Testing

/// The place where a test's source delivers, on virtual time.
package enum DeliveryPlace: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case loop
    case pool

    package var testDescription: String { self == .loop ? "on a loop" : "on the background pool" }

    /// The calling thread's loop, or the simulation's pool.
    package var queue: DeliveryQueue { self == .loop ? .current : .background }
}

extension Log<String> {
    /// Logs the time of a delivery, and its number of fires.
    package func note(_ source: TimerSource) {
        self("\(source.queue.now.ms): \(source.data)")
    }

    /// Logs an event and its time.
    package func note(_ what: String, _ simulation: Simulation) {
        self("\(simulation.now.ms): \(what)")
    }
}
