#if Adapters
public import HTTPTypes
public import RunLoopUnix

extension HTTPServer {
    /// The hooks of a server, for a log of requests and for metrics. Each is called on the thread of the connection's
    /// loop. A value and `Sendable`.
    public struct Hooks: Sendable {
        /// Called when a client has connected. Clients that are refused count, too, except those that are closed at once.
        public var opened: (@Sendable (Endpoint) -> Void)?
        /// Called when the connection of a client has closed, once for each call of ``opened``.
        public var closed: (@Sendable (Endpoint) -> Void)?
        /// Called after each request, also one that was refused or cut off. A request that became a ``WebSocket`` is over when
        /// its connection closes.
        public var completed: (@Sendable (Completion) -> Void)?
        /// Called with an error that the program has thrown, other than a ``Refusal``. The client is answered with 500, or, if
        /// the answer had begun, its connection is closed. Without this hook, `RunLoop.trace` receives the error.
        public var failed: (@Sendable (any Error, HTTPRequest) -> Void)?

        /// Creates hooks that do nothing.
        public init() {}
    }

    /// A request that is over, for logs and metrics. A value and `Sendable`.
    public struct Completion: Sendable {
        /// The head of the request; `nil` if the client sent none that could be read.
        public let request: HTTPRequest?
        /// The version of HTTP as logs have it: `HTTP/1.0`, `HTTP/1.1` or `HTTP/2.0`.
        public let version: String
        /// The address of the client.
        public let peer: Endpoint
        /// The status of the answer; `nil` if it had not begun.
        public let status: HTTPResponse.Status?
        /// The number of bytes in the request's body that came.
        public let receivedBytes: Int
        /// The number of bytes in the answer's body that were given to the connection.
        public let sentBytes: Int
        /// The time from the end of the request's head to the end of the answer.
        public let duration: Duration
        /// The limit that the client has reached, if any.
        public let limit: Limit?
        /// True if the connection closed before the answer was complete.
        public let isCutOff: Bool
    }
}
#endif
