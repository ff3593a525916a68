import RunLoopCore
import RunLoopKit
import RunLoopSimulation
import TestSupport

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
