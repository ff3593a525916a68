#if Adapters
public import HTTPTypes

extension HTTPServer {
    /// An error with which a program answers a request: a status, a line of text, and further fields.
    ///
    /// ```swift
    /// guard let order = orders[number] else { throw HTTPServer.Refusal(.notFound, "there is no order \(number)") }
    /// ```
    ///
    /// The server throws it itself when a limit is reached. A value and `Sendable`.
    public struct Refusal: Error, Sendable, CustomStringConvertible {
        /// The status of the answer.
        public var status: HTTPResponse.Status
        /// The text of the answer, in one line.
        public var text: String
        /// The fields of the answer.
        public var headerFields: HTTPFields
        /// The limit that was reached; `nil` if a program refuses.
        public let limit: Limit?

        /// Creates the error for a status.
        ///
        /// - Parameters:
        ///   - status: the status of the answer.
        ///   - text: the reason, in one line.
        ///   - headerFields: further fields of the answer.
        public init(_ status: HTTPResponse.Status, _ text: String = "", headerFields: HTTPFields = [:]) {
            (self.status, self.text, self.headerFields, limit) = (status, text, headerFields, nil)
        }

        private init(_ status: HTTPResponse.Status, _ text: String, _ limit: Limit, _ fields: HTTPFields = [:]) {
            (self.status, self.text, headerFields, self.limit) = (status, text, fields, limit)
        }

        static func reached(_ limit: Limit) -> Refusal {
            switch limit {
            case .connections:
                Refusal(.serviceUnavailable, "too many connections", limit, [.retryAfter: "1"])
            case .connectionsPerPeer:
                Refusal(.tooManyRequests, "too many connections of this address", limit, [.retryAfter: "1"])
            case .headBytes: Refusal(.requestHeaderFieldsTooLarge, "the head is too large", limit)
            case .bodyBytes: Refusal(.contentTooLarge, "the body is too large", limit)
            case .unreadBytes: Refusal(.tooManyRequests, "too much is unread", limit)
            case .headTime, .stallTime: Refusal(.requestTimeout, "the request took too long", limit)
            case .answerTime: Refusal(.serviceUnavailable, "the answer took too long", limit)
            }
        }

        public var description: String { "\(status.code) \(status.reasonPhrase): \(text)" }
    }

    /// The errors of an exchange with a client. `Sendable`.
    public enum ExchangeError: Error, Sendable, Hashable, CustomStringConvertible {
        /// The client has gone, or the connection was closed, before the exchange was complete.
        case closed
        /// The program has written fewer or more bytes than it had announced.
        case wrongLength

        public var description: String {
            switch self {
            case .closed: "the connection closed before the answer was complete"
            case .wrongLength: "an answer had fewer or more bytes than its announced length; the connection was closed"
            }
        }
    }
}
#endif
