internal import CoreMetrics
internal import Synchronization

/// A metric and its values.
protocol Series: AnyObject, Sendable {
    /// The kind in the notation of Prometheus.
    var kind: String { get }
    /// The samples: the suffix of the name, a label of its own, and the value.
    var samples: [(suffix: String, label: String, value: String)] { get }
}

/// A counter, which only grows.
final class Total: Series, CounterHandler {
    private let count = Atomic<Int64>(0)

    let kind = "counter"
    var samples: [(suffix: String, label: String, value: String)] { [("", "", "\(count.load(ordering: .relaxed))")] }

    func increment(by amount: Int64) { count.wrappingAdd(amount, ordering: .relaxed) }
    func reset() { count.store(0, ordering: .relaxed) }
}

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

/// A histogram: the number of values within each bound.
final class Distribution: Series, RecorderHandler, TimerHandler {
    private static let bounds = [0.001, 0.01, 0.1, 1, 10, 100]

    private struct State {
        var counts = [Int](repeating: 0, count: Distribution.bounds.count)
        var count = 0
        var sum = 0.0
    }
    private let state = Mutex(State())

    let kind = "histogram"
    var samples: [(suffix: String, label: String, value: String)] {
        let state = state.withLock { $0 }
        let buckets = zip(Self.bounds, state.counts).map { ("_bucket", "le=\"\($0)\"", "\($1)") }
        return buckets + [
            ("_bucket", "le=\"+Inf\"", "\(state.count)"), ("_sum", "", "\(state.sum)"),
            ("_count", "", "\(state.count)"),
        ]
    }

    func recordNanoseconds(_ duration: Int64) { record(Double(duration) / 1e9) }
    func record(_ value: Int64) { record(Double(value)) }
    func record(_ value: Double) {
        state.withLock { state in
            for (index, bound) in Self.bounds.enumerated() where value <= bound { state.counts[index] += 1 }
            state.count += 1
            state.sum += value
        }
    }
}
