#if Adapters
public import HTTPTypes
public import NIOCore

extension HTTPServer {
    /// An answer: a status, fields, and a body that is in memory or is written piece by piece.
    ///
    /// The server adds the fields that frame the body, and the date.
    public struct Response {
        enum Content {
            case bytes(ByteBuffer)
            case stream(length: Int?, OutgoingBody.Source)
            case webSocket(subprotocol: String?, WebSocket.Service)
        }

        /// The status and the fields.
        public var head: HTTPResponse
        let content: Content

        /// The status.
        public var status: HTTPResponse.Status {
            get { head.status }
            set { head.status = newValue }
        }

        /// The fields.
        public var headerFields: HTTPFields {
            get { head.headerFields }
            set { head.headerFields = newValue }
        }

        /// Creates an answer with a body in memory.
        public init(
            _ status: HTTPResponse.Status = .ok, headerFields: HTTPFields = [:], body: ByteBuffer = ByteBuffer()
        ) {
            head = HTTPResponse(status: status, headerFields: headerFields)
            content = .bytes(body)
        }

        /// Creates an answer with a text.
        ///
        /// - Parameters:
        ///   - text: the body.
        ///   - status: the status.
        ///   - type: the value of `Content-Type`.
        public static func text(
            _ text: String, _ status: HTTPResponse.Status = .ok, type: String = "text/plain; charset=utf-8"
        ) -> Response {
            Response(status, type, ByteBuffer(string: text))
        }

        /// Creates an answer with bytes, such as JSON from an encoder.
        ///
        /// - Parameters:
        ///   - bytes: the body.
        ///   - status: the status.
        ///   - type: the value of `Content-Type`.
        public static func bytes(
            _ bytes: some Sequence<UInt8>, _ status: HTTPResponse.Status = .ok, type: String
        ) -> Response {
            Response(status, type, ByteBuffer(bytes: bytes))
        }

        /// Creates an answer with bytes, such as the body of another message.
        ///
        /// - Parameters:
        ///   - bytes: the body.
        ///   - status: the status.
        ///   - type: the value of `Content-Type`.
        public static func bytes(
            _ bytes: ByteBuffer, _ status: HTTPResponse.Status = .ok, type: String
        ) -> Response {
            Response(status, type, bytes)
        }

        /// Creates an answer whose body is written piece by piece, after the head.
        ///
        /// ```swift
        /// .stream(type: "text/event-stream") { writer in
        ///     for try await _ in request.loop.clock.ticks(every: .seconds(1)) { try await writer.write("data: tick\n\n") }
        /// }
        /// ```
        ///
        /// - Parameters:
        ///   - status: the status.
        ///   - length: the number of bytes that `body` will write; by default it is not announced.
        ///   - type: the value of `Content-Type`; by default the one in `headerFields`, if any.
        ///   - headerFields: further fields.
        ///   - body: writes the body, on the loop's thread. The answer is complete when it returns. If it throws, the
        ///     connection is closed, or the stream is reset, so that the client sees that something is missing.
        public static func stream(
            _ status: HTTPResponse.Status = .ok, length: Int? = nil, type: String? = nil,
            headerFields: HTTPFields = [:],
            _ body: nonisolated(nonsending) @escaping (HTTPBodyWriter) async throws -> Void
        ) -> Response {
            var head = HTTPResponse(status: status, headerFields: headerFields)
            if let type { head.headerFields[.contentType] = type }
            return Response(head: head, content: .stream(length: length, body))
        }

        /// Creates the answer that makes the connection a ``WebSocket``. A request that does not ask for that, or that comes by
        /// HTTP/2, is answered with 426.
        ///
        /// - Parameters:
        ///   - subprotocol: one of those that the request offers in `Sec-WebSocket-Protocol`.
        ///   - serve: the conversation, in the task of the request, on the loop's thread. When it returns, the socket is
        ///     closed. It is cancelled when the connection has closed.
        public static func webSocket(
            subprotocol: String? = nil, _ serve: nonisolated(nonsending) @escaping (WebSocket) async throws -> Void
        ) -> Response {
            Response(
                head: HTTPResponse(status: .switchingProtocols),
                content: .webSocket(subprotocol: subprotocol, serve))
        }

        private init(_ status: HTTPResponse.Status, _ type: String, _ body: ByteBuffer) {
            head = HTTPResponse(status: status)
            head.headerFields.append(HTTPField(name: .contentType, value: type))
            content = .bytes(body)
        }

        private init(head: HTTPResponse, content: Content) {
            (self.head, self.content) = (head, content)
        }
    }
}

@available(*, unavailable, message: "an answer is given on the thread of its loop")
extension HTTPServer.Response: Sendable {}
#endif
