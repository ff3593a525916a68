#if Adapters
public import HTTPTypes
public import NIOCore
internal import RunLoopKit

extension HTTPClient {
    /// An answer, whose body has yet to come. It belongs to the thread of the client's loop.
    ///
    /// The connection is used again when the body has been taken to its end. If the program releases the answer before, the
    /// connection is closed.
    public struct Response {
        /// The status and the fields of the answer.
        public let head: HTTPResponse
        /// The body of the answer.
        public let body: HTTPBody

        /// The status.
        public var status: HTTPResponse.Status { head.status }
        /// The fields.
        public var headerFields: HTTPFields { head.headerFields }

        /// The time when the head of the answer came.
        let date: RunLoop.WallTime

        /// The time that the server asks the client to wait, from when the head of the answer has come: the field
        /// `Retry-After`, in seconds or as a date (RFC 9110, section 10.2.3). Zero if the date has passed; `nil` if there is no
        /// field, or one that cannot be read. The server may ask for any time, so set a bound.
        public var retryAfter: Duration? {
            guard let text = headerFields[.retryAfter] else { return nil }
            if !text.isEmpty, text.utf8.allSatisfy({ (48...57).contains($0) }) {
                // Longer numbers than a billion say the same.
                return .seconds(min(Int(text) ?? .max, 1_000_000_000))
            }
            guard let second = HTTPDate.second(of: text) else { return nil }
            return max(.zero, RunLoop.WallTime(secondsSince1970: second) - date)
        }
    }

    /// The body of a request.
    public struct RequestBody {
        enum Content {
            case bytes(ByteBuffer)
            case stream(length: Int?, OutgoingBody.Source)
        }
        let content: Content

        /// A request without a body.
        public static var none: RequestBody { RequestBody(content: .bytes(ByteBuffer())) }

        /// A body in memory.
        public static func bytes(_ bytes: ByteBuffer) -> RequestBody { RequestBody(content: .bytes(bytes)) }

        /// A body in memory.
        public static func bytes(_ bytes: some Sequence<UInt8>) -> RequestBody { .bytes(ByteBuffer(bytes: bytes)) }

        /// A text.
        public static func text(_ text: String) -> RequestBody { .bytes(ByteBuffer(string: text)) }

        /// A body that is written piece by piece. The request is never repeated.
        ///
        /// - Parameters:
        ///   - length: the number of bytes that `write` will write; by default it is not announced.
        ///   - write: writes the body, in a task of its own on the loop's thread, because the server may answer before it has
        ///     all of it. If it throws, the request fails with
        ///     ``HTTPClient/Failure/requestBody(_:)``.
        public static func stream(
            length: Int? = nil, _ write: nonisolated(nonsending) @escaping (HTTPBodyWriter) async throws -> Void
        ) -> RequestBody {
            RequestBody(content: .stream(length: length, write))
        }
    }
}

@available(*, unavailable, message: "an answer belongs to the thread of its loop")
extension HTTPClient.Response: Sendable {}
@available(*, unavailable, message: "a body is written on the thread of its loop")
extension HTTPClient.RequestBody: Sendable {}
#endif
