internal import NIOHTTP1

/// A request that is not performed, with its answer.
struct Refusal: Error {
    /// A limit that was reached, in the metrics.
    enum Limit: String, CaseIterable {
        case connections, connectionsPerPeer, headBytes, bodyBytes, uploadBytes, headTime, stallTime, unreadBytes
    }

    let status: HTTPResponseStatus
    /// The reason, in one line.
    let text: String
    var headers: HTTPHeaders = [:]
    var limit: Limit?

    static func reached(_ limit: Limit) -> Refusal {
        switch limit {
        case .connections:
            Refusal(
                status: .serviceUnavailable, text: "too many connections", headers: ["retry-after": "1"], limit: limit)
        case .connectionsPerPeer:
            Refusal(
                status: .tooManyRequests, text: "too many connections of this address", headers: ["retry-after": "1"],
                limit: limit)
        case .headBytes: Refusal(status: .requestHeaderFieldsTooLarge, text: "the head is too large", limit: limit)
        case .bodyBytes, .uploadBytes: Refusal(status: .payloadTooLarge, text: "the body is too large", limit: limit)
        case .headTime, .stallTime: Refusal(status: .requestTimeout, text: "the request took too long", limit: limit)
        case .unreadBytes: Refusal(status: .tooManyRequests, text: "too much is unread", limit: limit)
        }
    }
}
