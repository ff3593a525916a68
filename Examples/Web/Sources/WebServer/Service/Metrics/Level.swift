internal import CoreMetrics
internal import Synchronization

/// A gauge, which has its last value.
final class Level: Series, RecorderHandler, MeterHandler {
    private let level = Mutex(0.0)

    let kind = "gauge"
    var samples: [(suffix: String, label: String, value: String)] { [("", "", "\(level.withLock { $0 })")] }

    func record(_ value: Int64) { set(Double(value)) }
    func record(_ value: Double) { set(value) }
    func set(_ value: Int64) { set(Double(value)) }
    func set(_ value: Double) { level.withLock { $0 = value } }
    func increment(by amount: Double) { level.withLock { $0 += amount } }
    func decrement(by amount: Double) { level.withLock { $0 -= amount } }
}
