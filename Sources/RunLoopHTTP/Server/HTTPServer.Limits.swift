#if Adapters
extension HTTPServer {
    /// The limits for the clients of a server. All are on by default. A value and `Sendable`.
    ///
    /// A limit for times begins anew with each step of its phase, so a slow client that makes progress is served.
    public struct Limits: Sendable, Hashable {
        /// The largest number of open connections. A connection beyond is answered with 503, and up to 64 of these are
        /// answered at a time.
        public var connections = 10_000
        /// The largest number of open connections from one address. A connection beyond is answered with 429.
        public var connectionsPerPeer = 1_000
        /// The largest number of bytes in the names and values of a request's fields, together with its target. A longer
        /// head is answered with 431.
        public var headBytes = 16 * 1024
        /// The largest number of bytes in the body of a request, unless ``HTTPBody/collect(upTo:isolation:)`` or
        /// ``HTTPExchange/maximumBody`` says otherwise. A longer body is answered with 413.
        public var bodyBytes = 1024 * 1024
        /// The largest number of bytes in a message of a ``WebSocket``. A longer one is answered with the status 1009.
        public var messageBytes = 1024 * 1024
        /// The largest number of bytes of a ``WebSocket`` that wait for its client. A client that is sent a further message
        /// by ``WebSocket/write(_:)`` is closed.
        public var unreadBytes = 256 * 1024
        /// The largest number of concurrent streams in one HTTP/2 connection.
        public var streams = 100
        /// The largest number of streams that one HTTP/2 connection may reset in half a minute; one that resets more is closed.
        public var resets = 200
        /// The largest number of pings and settings that one HTTP/2 connection may send in half a minute.
        public var controlFrames = 200
        /// The longest time from the first byte of a request, or the start of its connection, to the end of its head. It
        /// is also the time for a TLS handshake. A slower client is answered with 408.
        public var headTime = Duration.seconds(10)
        /// The longest time that a connection may be without a request.
        public var idleTime = Duration.seconds(60)
        /// The longest time that a request waits for the next piece of its body, which is answered with 408, or an answer
        /// or the messages of a ``WebSocket`` for their reader, after which the connection is closed.
        public var stallTime = Duration.seconds(30)
        /// The longest time from the last step of a client until the program begins its answer, which is 503 otherwise.
        public var answerTime = Duration.seconds(60)

        /// Creates the default limits.
        public init() {}
    }

    /// A limit that a client has reached. A value and `Sendable`.
    public enum Limit: String, Sendable, Hashable, CaseIterable {
        /// ``Limits/connections``
        case connections
        /// ``Limits/connectionsPerPeer``
        case connectionsPerPeer
        /// ``Limits/headBytes``
        case headBytes
        /// ``Limits/bodyBytes``
        case bodyBytes
        /// ``Limits/unreadBytes``
        case unreadBytes
        /// ``Limits/headTime``
        case headTime
        /// ``Limits/stallTime``
        case stallTime
        /// ``Limits/answerTime``
        case answerTime

        /// Creates the limit at which a WebSocket was lost; `nil` if its client has reached none.
        init?(_ loss: WebSocket.Loss?) {
            switch loss {
            case .unread: self = .unreadBytes
            case .stalled: self = .stallTime
            case .cut, .silent, .broken, nil: return nil
            }
        }
    }
}
#endif
