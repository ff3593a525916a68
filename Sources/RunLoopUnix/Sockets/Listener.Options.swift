public import RunLoopCore

extension Listener {
    /// The options of a listener.
    public struct Options: Sendable {
        /// The number of connections that may wait to be accepted; by default 511.
        public var backlog: Int32 = 511
        /// A Boolean value that indicates whether other processes may listen on the same port. The system then spreads
        /// connections over them.
        public var reusesPort = false
        /// A Boolean value that indicates whether an IPv6 socket also accepts IPv4 connections.
        public var isDualStack = true
        /// A Boolean value that indicates whether writes are sent at once, without waiting for more data
        /// (`TCP_NODELAY`).
        public var hasNoDelay = true
        /// A Boolean value that indicates whether to replace the path of a Unix socket on which no process answers. A
        /// file that is not a socket is never replaced.
        public var replacesStalePath = true
        /// The permissions of the path of a Unix socket, regardless of the process's umask. Write permission allows a
        /// process to connect. By default `0o600`, which admits this user's processes.
        public var permissions: UInt32 = 0o600
        /// The maximum number of connections that a pass accepts; by default 64.
        public var budget = 64
        /// The time for which the listener pauses when no descriptor is left; at least 1 ms, by default 100 ms.
        public var pause = Duration.milliseconds(100)
        /// The maximum number of connections that the handler receives per interval; `nil`, the default, means no
        /// limit. Connections over the limit wait in the system's queue; the system refuses them once the queue is
        /// full.
        public var rateLimit: RateLimit?
        /// The maximum number of connections from one peer that the handler receives per interval; `nil`, the default,
        /// means no limit. Connections over the limit are closed at once, and do not count for ``rateLimit``. A peer is
        /// an IPv4 address, or the first 64 bits of an IPv6 address. The limit does not apply to Unix sockets. After
        /// 16,384 peers in an interval, counting starts anew.
        public var peerRateLimit: RateLimit?

        /// Creates the default options.
        public init() {}
    }
}
