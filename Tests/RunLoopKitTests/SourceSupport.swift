import RunLoopCore
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

/// The place where a test's source delivers, on virtual time.
enum Place: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case loop
    case pool

    var testDescription: String { self == .loop ? "on a loop" : "on the background pool" }

    /// The calling thread's loop, or the simulation's pool.
    var queue: DeliveryQueue { self == .loop ? .current : .background }
}

extension Log<String> {
    /// Logs the time of a delivery, and its number of fires.
    func note(_ source: TimerSource) {
        self("\(source.queue.now.ms): \(source.data)")
    }

    /// Logs an event and its time.
    func note(_ what: String, _ simulation: Simulation) {
        self("\(simulation.now.ms): \(what)")
    }
}

extension TimerSource {
    /// Creates a source that writes its deliveries into a log; inactive, and without a schedule.
    convenience init(_ queue: DeliveryQueue, _ log: Log<String>) {
        self.init(queue: queue)
        setEventHandler { log.note($0) }
    }

    /// Creates an active source that writes its deliveries into a log.
    convenience init(_ queue: DeliveryQueue, _ log: Log<String>, after delay: Int, every interval: Int?) {
        self.init(queue, log)
        schedule(after: .milliseconds(delay), repeating: interval.map { .milliseconds($0) })
        activate()
    }
}
