internal import CoreMetrics
internal import Synchronization

/// A counter, which only grows.
final class Total: Series, CounterHandler {
    private let count = Atomic<Int64>(0)

    let kind = "counter"
    var samples: [(suffix: String, label: String, value: String)] { [("", "", "\(count.load(ordering: .relaxed))")] }

    func increment(by amount: Int64) { count.wrappingAdd(amount, ordering: .relaxed) }
    func reset() { count.store(0, ordering: .relaxed) }
}
