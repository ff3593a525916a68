internal import CoreMetrics
internal import Synchronization

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
