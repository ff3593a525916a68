internal import CoreMetrics
internal import RunLoopUnix
internal import Synchronization

/// Metrics of swift-metrics in the text format of Prometheus. Any thread.
final class TextMetrics: MetricsFactory {
    /// A metric with its dimensions.
    private struct Name: Hashable {
        let label: String
        let labels: String

        init(_ label: String, _ dimensions: [(String, String)]) {
            self.label = String(label.map { $0.isLetter || $0.isNumber ? $0 : "_" })
            labels = dimensions.map { "\($0)=\"\($1.replacing("\\", with: "\\\\").replacing("\"", with: "\\\""))\"" }
                .joined(separator: ",")
        }
    }

    private let series = Mutex<[Name: any Series]>([:])

    private func make<Made: Series>(_ label: String, _ dimensions: [(String, String)], _ new: () -> Made) -> Made {
        series.withLock { series in
            let name = Name(label, dimensions)
            if let old = series[name] as? Made { return old }
            let made = new()
            series[name] = made
            return made
        }
    }

    func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        make(label, dimensions) { Total() }
    }

    func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        make(label, dimensions) { Level() }
    }

    func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
        aggregate ? make(label, dimensions) { Distribution() } : make(label, dimensions) { Level() }
    }

    func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        make(label, dimensions) { Distribution() }
    }

    // The daemon's metrics last as long as it does.
    func destroyCounter(_ handler: any CounterHandler) {}
    func destroyMeter(_ handler: any MeterHandler) {}
    func destroyRecorder(_ handler: any RecorderHandler) {}
    func destroyTimer(_ handler: any TimerHandler) {}

    /// All metrics, sorted by name.
    var text: String {
        let sorted = series.withLock { $0.map { ($0, $1) } }.sorted {
            ($0.0.label, $0.0.labels) < ($1.0.label, $1.0.labels)
        }
        var (text, last) = ("", "")
        for (name, series) in sorted {
            if name.label != last { text += "# TYPE \(name.label) \(series.kind)\n" }
            last = name.label
            for (suffix, label, value) in series.samples {
                let labels = [name.labels, label].filter { !$0.isEmpty }.joined(separator: ",")
                text += "\(name.label)\(suffix)\(labels.isEmpty ? "" : "{\(labels)}") \(value)\n"
            }
        }
        return text
    }
}

/// A metric and its values.
private protocol Series: AnyObject, Sendable {
    /// The kind in the notation of Prometheus.
    var kind: String { get }
    /// The suffix of the name, a label of its own, and the value.
    var samples: [(suffix: String, label: String, value: String)] { get }
}

private final class Total: Series, CounterHandler {
    private let count = Atomic<Int64>(0)

    let kind = "counter"
    var samples: [(suffix: String, label: String, value: String)] { [("", "", "\(count.load(ordering: .relaxed))")] }

    func increment(by amount: Int64) { count.wrappingAdd(amount, ordering: .relaxed) }
    func reset() { count.store(0, ordering: .relaxed) }
}

private final class Level: Series, RecorderHandler, MeterHandler {
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

private final class Distribution: Series, RecorderHandler, TimerHandler {
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
