import RunLoopCore
import RunLoopKit
import RunLoopSimulation
import Testing

/// Where a source of a test delivers, on virtual time.
enum Place: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case loop
    case pool

    var testDescription: String { self == .loop ? "on a loop" : "on the background pool" }

    /// The calling thread's loop, or the simulation's pool.
    var queue: DeliveryQueue { self == .loop ? .current : .background }
}

extension RunLoop.Instant {
    /// So many milliseconds after the start of the simulation.
    static func ms(_ milliseconds: Int64) -> RunLoop.Instant {
        RunLoop.Instant(nanoseconds: milliseconds * 1_000_000)
    }

    /// Whole milliseconds since the start of the simulation.
    var ms: Int64 { nanoseconds / 1_000_000 }
}

extension Log where Entry == String {
    /// Writes down when a source delivers, and how many fires.
    func note(_ source: TimerSource) {
        append("\(source.queue.now.ms): \(source.data)")
    }

    /// Writes down when something happens.
    func note(_ what: String, _ simulation: Simulation) {
        append("\(simulation.now.ms): \(what)")
    }
}

extension TimerSource {
    /// A source that writes its deliveries into a log; inactive, and without a schedule.
    convenience init(_ queue: DeliveryQueue, _ log: Log<String>) {
        self.init(queue: queue)
        setEventHandler { log.note($0) }
    }

    /// An active source that writes its deliveries into a log.
    convenience init(_ queue: DeliveryQueue, _ log: Log<String>, after delay: Int, every interval: Int?) {
        self.init(queue, log)
        schedule(after: .milliseconds(delay), repeating: interval.map { .milliseconds($0) })
        activate()
    }
}
