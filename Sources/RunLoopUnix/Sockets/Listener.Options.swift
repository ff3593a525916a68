public import RunLoopCore

extension Listener {
    /// The options of a listener.
    public struct Options: Sendable {
        /// The number of connections that may wait to be accepted; 511 unless set.
        public var backlog: Int32 = 511
        /// Whether other processes may listen on the same port. The system then spreads connections over them.
        public var reusesPort = false
        /// Whether an IPv6 socket accepts IPv4 connections as well.
        public var isDualStack = true
        /// Whether writes are sent at once, without waiting for more data (`TCP_NODELAY`).
        public var hasNoDelay = true
        /// Whether to replace the path of a Unix socket on which no process answers. A file that is no socket is never
        /// replaced.
        public var replacesStalePath = true
        /// The permissions of the path of a Unix socket, regardless of the process's umask. Write permission allows a
        /// process to connect. `0o600` unless set: this user's processes.
        public var permissions: UInt32 = 0o600
        /// The most connections that a pass accepts; 64 unless set.
        public var budget = 64
        /// How long the listener pauses when there is no descriptor left; 100 ms unless set, and at least 1 ms.
        public var pause = Duration.milliseconds(100)
        /// The most connections that the handler receives per interval; `nil`, the default, means no limit. Connections
        /// over the limit wait in the system's queue; the system refuses them once the queue is full.
        public var rateLimit: RateLimit?
        /// The most connections of one peer that the handler receives per interval; `nil`, the default, means no limit.
        /// Connections over the limit are closed at once, and do not count for ``rateLimit``. A peer is an IPv4
        /// address, or the first 64 bits of an IPv6 address. The limit does not apply to Unix sockets. Beyond 16,384
        /// peers in an interval all are counted anew.
        public var peerRateLimit: RateLimit?

        /// The defaults.
        public init() {}
    }
}
