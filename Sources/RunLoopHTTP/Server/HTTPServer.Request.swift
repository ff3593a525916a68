#if Adapters
public import HTTPTypes
public import RunLoopKit
public import RunLoopTLS
public import RunLoopUnix

extension HTTPServer {
    /// A request, for the task that answers it. It belongs to the thread of the connection's loop.
    public struct Request {
        private let exchange: HTTPExchange

        init(_ exchange: HTTPExchange) {
            self.exchange = exchange
        }

        /// The method, the target and the fields of the request.
        public var head: HTTPRequest { exchange.request }
        /// The method.
        public var method: HTTPRequest.Method { head.method }
        /// The path of the target, without its query, as the client has sent it: `/` or `/orders/7%20a`.
        public var path: Substring { (head.path ?? "/").prefix { $0 != "?" } }
        /// The query of the target, without its question mark, as the client has sent it; `nil` if there is none.
        public var query: Substring? {
            guard let text = head.path, let mark = text.firstIndex(of: "?") else { return nil }
            return text[text.index(after: mark)...]
        }
        /// The fields of the head. `Host` is in `head.authority`.
        public var headerFields: HTTPFields { head.headerFields }
        /// The body of the request.
        public var body: HTTPBody { HTTPBody(exchange.body, of: exchange) }
        /// The largest number of bytes that the body may have; by default ``HTTPServer/Limits/bodyBytes``. Set it before you
        /// take the body.
        public var maximumBody: Int {
            get { exchange.maximumBody }
            nonmutating set { exchange.maximumBody = newValue }
        }
        /// The loop of the connection, on whose thread the request is answered.
        public var loop: RunLoop { exchange.loop }
        /// The address of the client.
        public var peer: Endpoint { exchange.peer }
        /// The TLS session below the connection; `nil` if the connection does not speak TLS.
        public var tls: TLSSession? { exchange.tls }
    }
}

@available(*, unavailable, message: "a request belongs to the thread of its loop")
extension HTTPServer.Request: Sendable {}
#endif
