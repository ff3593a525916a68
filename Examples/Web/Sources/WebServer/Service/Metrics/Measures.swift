internal import CoreMetrics
internal import NIOHTTP1

/// The metrics of the daemon. Any thread.
struct Measures: Sendable {
    let connections: Gauge
    let members: Gauge
    let seconds: CoreMetrics.Timer
    let received: Counter
    let sent: Counter
    private let requests: [Counter]
    private let refusals: [Refusal.Limit: Counter]

    init(_ factory: any MetricsFactory) {
        connections = Gauge(label: "web_connections", factory: factory)
        members = Gauge(label: "web_chat_members", factory: factory)
        seconds = Timer(label: "web_request_seconds", dimensions: [], factory: factory)
        received = Counter(label: "web_received_bytes_total", factory: factory)
        sent = Counter(label: "web_sent_bytes_total", factory: factory)
        requests = (1...5).map {
            Counter(label: "web_requests_total", dimensions: [("class", "\($0)xx")], factory: factory)
        }
        refusals = Dictionary(
            uniqueKeysWithValues: Refusal.Limit.allCases.map {
                ($0, Counter(label: "web_refusals_total", dimensions: [("limit", $0.rawValue)], factory: factory))
            })
    }

    func countAnswer(_ status: HTTPResponseStatus) {
        requests[max(0, min(4, Int(status.code) / 100 - 1))].increment()
    }

    func countRefusal(_ limit: Refusal.Limit) {
        refusals[limit]?.increment()
    }
}
