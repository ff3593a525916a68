#if Adapters
public import RunLoopTLS

extension HTTPClient {
    /// The options of a client. All limits are on by default. A value and `Sendable`.
    public struct Options: Sendable {
        /// The largest number of connections to one origin, which is a scheme, a host and a port. Further requests wait for one
        /// of them. With HTTP/2 one connection has all requests.
        public var connectionsPerOrigin = 8
        /// The time that an unused connection is kept. The server of a ``WebSocket`` that has sent nothing for this time is asked
        /// for a sign of life.
        public var idleTime = Duration.seconds(30)
        /// The longest time until a server is connected and has agreed on TLS.
        public var connectTime = Duration.seconds(10)
        /// The longest time from the call to the head of the answer, with all waits before it.
        public var answerTime = Duration.seconds(30)
        /// The longest time without progress of a body, in either direction, or of the messages to the server of a
        /// ``WebSocket``.
        public var stallTime = Duration.seconds(30)
        /// The largest number of bytes in the names and values of an answer's fields.
        public var headBytes = 64 * 1024
        /// The largest number of bytes in the body of an answer, unless ``HTTPBody/collect(upTo:isolation:)`` says
        /// otherwise; by default there is no limit, because the program takes a body piece by piece.
        public var bodyBytes = Int.max
        /// The largest number of bytes in a message from the server of a ``WebSocket``. A longer one is answered with the status
        /// 1009.
        public var messageBytes = 1024 * 1024
        /// The largest number of bytes of a ``WebSocket`` that wait for its server. A further message by
        /// ``WebSocket/write(_:)`` closes the connection.
        public var unreadBytes = 256 * 1024
        /// The certificates that the client trusts, and its own. With `nil`, the default, the system's authorities are trusted.
        ///
        /// HTTP/2 and HTTP/1.1 are offered, unless the context has `applicationProtocols` of its own. A ``WebSocket`` offers
        /// HTTP/1.1 alone.
        public var tls: TLSClientContext?

        /// Creates the default options.
        public init() {}
    }
}
#endif
