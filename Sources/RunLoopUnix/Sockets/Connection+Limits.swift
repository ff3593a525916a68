extension Connection {
    /// The limits of a connection.
    public struct Limits: Sendable {
        /// Reading stops when more bytes than this wait to be sent; 256 KiB unless set.
        public var highWatermark = 256 * 1024
        /// Reading resumes when no more bytes than this wait; 64 KiB unless set.
        public var lowWatermark = 64 * 1024
        /// The connection closes when more bytes than this wait to be sent; 64 MiB unless set, `nil` for no limit.
        public var maximumOutput: Int? = 64 * 1024 * 1024
        /// The connection closes when the receive handler leaves more bytes than this unused; 1 MiB unless set.
        public var maximumInput = 1024 * 1024
        /// The connection closes when nothing was received or sent for this long; `nil`, the default, for never.
        public var idleTimeout: Duration?
        /// The connection closes after this time; `nil`, the default, for never.
        public var totalTimeout: Duration?

        /// The defaults.
        public init() {}
    }

    /// Why a connection was closed.
    public enum CloseReason: Sendable, Equatable {
        /// ``Connection/close()`` or ``Connection/finish(within:)`` was called.
        case closed
        /// The peer ended the stream.
        case ended
        /// Nothing was received or sent for the idle timeout.
        case idleTimeout
        /// The total timeout has passed.
        case totalTimeout
        /// The peer reads too slowly: more bytes waited to be sent than the limit allows.
        case outputLimit
        /// The receive handler left more bytes unused than the limit allows.
        case inputLimit
        /// The system reported an error, for example that the peer reset the connection.
        case failed(SystemError)
        /// The TLS handshake failed, or TLS was broken off.
        case tls(TLSError)
    }
}
