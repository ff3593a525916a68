extension Connection {
    /// The limits of a connection.
    public struct Limits: Sendable {
        /// The number of bytes beyond which waiting output makes the connection full; 256 KiB unless set. Then
        /// ``Connection/fullHandler`` is called, and reading stops unless ``readsWhileFull`` is set.
        public var highWatermark = 256 * 1024
        /// The number of waiting bytes at or below which a full connection is no longer full; 64 KiB unless set. Then
        /// reading continues, and ``Connection/drainHandler`` is called. The high watermark counts if it is lower.
        public var lowWatermark = 64 * 1024
        /// Whether reading continues while the connection is full; `false` unless set.
        ///
        /// A server that answers requests needs `false`: it does not read from a peer that does not read its answers.
        /// Where input does not become output of the same connection, as in a proxy, set this to `true`: the two
        /// directions are independent, and would otherwise stop each other for ever.
        public var readsWhileFull = false
        /// The most bytes that may wait to be sent before the connection closes; 64 MiB unless set, `nil` for no limit.
        public var maximumOutput: Int? = 64 * 1024 * 1024
        /// The most bytes that the receive handler may leave unused before the connection closes, counted with
        /// ``Connection/heldInput``; 1 MiB unless set.
        public var maximumInput = 1024 * 1024
        /// The limit on the input that many connections hold together; `nil`, the default, means no such limit.
        public var inputBudget: InputBudget?
        /// The time without input or output after which the connection closes; `nil`, the default, means no limit.
        public var idleTimeout: Duration?
        /// The time without input after which the connection closes with ``Connection/CloseReason/idleTimeout``, even
        /// if it sent output; `nil`, the default, means no limit. The time does not pass while the connection does not
        /// read: while reading is paused, or too many bytes wait to be sent.
        public var inputTimeout: Duration?
        /// The time after which the connection closes in any case; `nil`, the default, means no limit.
        public var totalTimeout: Duration?

        /// The defaults.
        public init() {}

        var countsIdleTime: Bool { idleTimeout != nil || inputTimeout != nil }
        var timeouts: (Duration?, Duration?, Duration?) { (idleTimeout, inputTimeout, totalTimeout) }
    }

    /// The reason for which a connection was closed. A value and `Sendable`.
    public enum CloseReason: Sendable, Equatable {
        /// ``Connection/close()`` or ``Connection/finish(within:)`` was called.
        case closed
        /// The peer ended the stream.
        case ended
        /// Nothing was received or sent for the idle timeout, or nothing was received for the input timeout.
        case idleTimeout
        /// The total timeout has passed.
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

        /// Returns whether two reasons are of the same kind and have equal errors.
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
