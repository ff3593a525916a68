extension Connection {
    /// The bounds of a connection.
    public struct Limits: Sendable {
        /// How many bytes may wait to go out before reading stops.
        public var highWatermark = 256 * 1024
        /// How few must wait for reading to go on.
        public var lowWatermark = 64 * 1024
        /// How many bytes may wait to go out at all; with more the connection closes. `nil` for no bound.
        public var maximumOutput: Int? = 64 * 1024 * 1024
        /// How many bytes the receive handler may leave unused; with more the connection closes.
        public var maximumInput = 1024 * 1024
        /// How long nothing may come or go before the connection closes; `nil` for ever.
        public var idleTimeout: Duration?
        /// How long the connection may last; `nil` for ever.
        public var totalTimeout: Duration?

        /// The usual bounds.
        public init() {}
    }

    /// Why a connection was closed.
    public enum CloseReason: Sendable, Equatable {
        /// By ``Connection/close()`` or ``Connection/finish()``.
        case closed
        /// The peer has ended the stream.
        case ended
        /// Nothing came or went for the idle timeout.
        case idleTimeout
        /// It lasted as long as it may.
        case totalTimeout
        /// The peer reads too slowly: more waited to go out than may.
        case outputLimit
        /// The receive handler left more unused than may wait.
        case inputLimit
        /// The system reports an error, as a reset by the peer.
        case failed(SystemError)
        /// TLS could not be agreed upon, or was broken off.
        case tls(TLSError)
    }
}
