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

    // The daemon's metrics last as long as the daemon.
    func destroyCounter(_ handler: any CounterHandler) {}
    func destroyMeter(_ handler: any MeterHandler) {}
    func destroyRecorder(_ handler: any RecorderHandler) {}
    func destroyTimer(_ handler: any TimerHandler) {}

    /// All metrics as text, sorted by name.
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
