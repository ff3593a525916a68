extension Connection {
    /// The limits of a connection.
    public struct Limits: Sendable {
        /// The number of bytes of waiting output beyond which the connection is full; by default 256 KiB. Then
        /// ``Connection/fullHandler`` is called, and reading stops unless ``readsWhileFull`` is `true`.
        public var highWatermark = 256 * 1024
        /// The number of bytes of waiting output at or below which a full connection is no longer full; by default 64
        /// KiB. Then reading continues, and ``Connection/drainHandler`` is called. A lower high watermark takes
        /// precedence.
        public var lowWatermark = 64 * 1024
        /// A Boolean value that indicates whether reading continues while the connection is full; by default `false`.
        ///
        /// A server that answers requests needs `false`, so that it does not read from a peer that does not read its
        /// answers. If input does not become output of the same connection, as in a proxy, set it to `true`; otherwise
        /// the two independent directions could stop each other forever.
        public var readsWhileFull = false
        /// The maximum number of bytes that may wait to be sent before the connection closes; by default 64 MiB, `nil`
        /// for no limit.
        public var maximumOutput: Int? = 64 * 1024 * 1024
        /// The maximum number of bytes that the receive handler may leave unused before the connection closes,
        /// including ``Connection/heldInput``; by default 1 MiB.
        public var maximumInput = 1024 * 1024
        /// The shared limit on the input held by many connections; `nil`, the default, means no limit.
        public var inputBudget: InputBudget?
        /// The time without input or output after which the connection closes; `nil`, the default, means no limit.
        public var idleTimeout: Duration?
        /// The time without input after which the connection closes with ``Connection/CloseReason/idleTimeout``, even
        /// if it sent output; `nil`, the default, means no limit. The time stops while the connection does not read,
        /// because reading is paused or too many bytes wait to be sent.
        public var inputTimeout: Duration?
        /// The time after which the connection closes regardless of activity; `nil`, the default, means no limit.
        public var totalTimeout: Duration?

        /// Creates the default limits.
        public init() {}

        var countsIdleTime: Bool { idleTimeout != nil || inputTimeout != nil }
        var timeouts: (Duration?, Duration?, Duration?) { (idleTimeout, inputTimeout, totalTimeout) }
    }

    /// The reason why a connection was closed. A value and `Sendable`.
    public enum CloseReason: Sendable, Equatable {
        /// ``Connection/close()`` or ``Connection/finish(within:)`` was called.
        case closed
        /// The peer ended the stream.
        case ended
        /// Nothing was received or sent for the idle timeout, or nothing received for the input timeout.
        case idleTimeout
        /// The total timeout expired.
        case totalTimeout
        /// The peer reads too slowly: more bytes waited to be sent than the limit allows.
        case outputLimit
        /// The connection held more unused input than its limit or its shared budget allows.
        case inputLimit
        /// The loop ended while the connection was open.
        case loopEnded
        /// The connection moved to another loop, where another connection continues; see
        /// ``Connection/move(to:inModes:arrival:)``.
        case moved
        /// The stream failed, for example because the peer reset the connection: a ``SystemError``, or the error of a
        /// layer above the descriptor, such as RunLoopTLS's `TLSError`.
        case failed(any Error & Hashable & Sendable)

        /// Returns a Boolean value that indicates whether two reasons are of the same kind and have equal errors.
        public static func == (left: CloseReason, right: CloseReason) -> Bool {
            switch (left, right) {
            case (.closed, .closed), (.ended, .ended), (.idleTimeout, .idleTimeout), (.totalTimeout, .totalTimeout),
                (.outputLimit, .outputLimit), (.inputLimit, .inputLimit), (.loopEnded, .loopEnded), (.moved, .moved):
                true
            case (.failed(let one), .failed(let other)): AnyHashable(one) == AnyHashable(other)
            default: false
            }
        }
    }
}
