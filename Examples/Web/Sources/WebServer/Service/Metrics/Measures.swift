internal import CoreMetrics
internal import RunLoopHTTP

/// The metrics of the daemon. Any thread.
struct Measures: Sendable {
    let connections: Gauge
    let members: Gauge
    private let seconds: CoreMetrics.Timer
    private let received: Counter
    private let sent: Counter
    private let requests: [Counter]
    private let refusals: [String: Counter]

    init(_ factory: any MetricsFactory) {
        connections = Gauge(label: "web_connections", factory: factory)
        members = Gauge(label: "web_chat_members", factory: factory)
        seconds = Timer(label: "web_request_seconds", dimensions: [], factory: factory)
        received = Counter(label: "web_received_bytes_total", factory: factory)
        sent = Counter(label: "web_sent_bytes_total", factory: factory)
        requests = (1...5).map {
            Counter(label: "web_requests_total", dimensions: [("class", "\($0)xx")], factory: factory)
        }
        let limits = HTTPServer.Limit.allCases.map(\.rawValue) + ["uploadBytes"]
        refusals = Dictionary(
            uniqueKeysWithValues: limits.map {
                ($0, Counter(label: "web_refusals_total", dimensions: [("limit", $0)], factory: factory))
            })
    }

    func count(_ request: HTTPServer.Completion) {
        received.increment(by: request.receivedBytes)
        sent.increment(by: request.sentBytes)
        if let limit = request.limit {
            let isUpload = limit == .bodyBytes && request.request?.method == .put
            refusals[isUpload ? "uploadBytes" : limit.rawValue]?.increment()
        }
        guard let status = request.status, !request.isCutOff else { return }
        requests[max(0, min(4, status.code / 100 - 1))].increment()
        // A conversation takes as long as its client wants.
        if status != .switchingProtocols { seconds.recordNanoseconds(Int64(request.duration / .nanoseconds(1))) }
    }
}
