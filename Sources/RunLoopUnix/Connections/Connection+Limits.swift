extension Connection {
    /// The limits of a connection.
    public struct Limits: Sendable {
        /// When more bytes than this wait to be sent, the connection is full; 256 KiB unless set. Reading stops then,
        /// unless ``readsWhileFull`` is set, and ``Connection/fullHandler`` is called.
        public var highWatermark = 256 * 1024
        /// When no more bytes than this wait, a full connection is full no longer; 64 KiB unless set. Reading goes on,
        /// and ``Connection/drainHandler`` is called.
        public var lowWatermark = 64 * 1024
        /// Whether reading goes on while the connection is full; `false` unless set.
        ///
        /// A server that answers needs `false`: a peer that does not read its answers is not read either. Where what is
        /// read does not become output of the same connection, as in a proxy, the two directions are independent, and
        /// would otherwise stop each other for ever.
        public var readsWhileFull = false
        /// The connection closes when more bytes than this wait to be sent; 64 MiB unless set, `nil` for no limit.
        public var maximumOutput: Int? = 64 * 1024 * 1024
        /// The connection closes when the receive handler leaves more bytes than this unused, together with
        /// ``Connection/heldInput``; 1 MiB unless set.
        public var maximumInput = 1024 * 1024
        /// What many connections may hold of input together; `nil`, the default, for no such limit.
        public var inputBudget: InputBudget?
        /// The connection closes when nothing was received or sent for this long; `nil`, the default, for never.
        public var idleTimeout: Duration?
        /// The connection closes with ``Connection/CloseReason/idleTimeout`` when nothing was received for this long, even
        /// if something was sent; `nil`, the default, for never. The time does not pass while the connection does not read:
        /// while reading is paused, or too many bytes wait to be sent.
        public var inputTimeout: Duration?
        /// The connection closes after this time; `nil`, the default, for never.
        public var totalTimeout: Duration?

        /// The defaults.
        public init() {}
    }

    /// Why a connection was closed. A value and `Sendable`.
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
        /// The connection held more unused input than its limit, or the budget that it shares, allows.
        case inputLimit
        /// The loop has ended with the connection open.
        case loopEnded
        /// It has moved to another loop, where another connection goes on; see ``Connection/move(to:inModes:arrival:)``.
        case moved
        /// Something failed, for example because the peer has reset the connection: a ``SystemError``, or the error of a
        /// layer above the descriptor, such as RunLoopTLS's `TLSError`.
        case failed(any Error & Hashable & Sendable)

        /// Two reasons are equal if they are of one kind and their errors are equal.
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
