extension DatagramSocket {
    /// The options of a datagram socket. A value and `Sendable`.
    public struct Options: Sendable {
        /// The most bytes of a datagram that are received; the rest of a longer one is lost, which
        /// ``Header/isTruncated`` tells. 65,535 unless set, which truncates none of UDP; at least 1.
        public var maximumSize = 65_535
        /// The most datagrams that a pass receives, and the most that it sends; 64 unless set, and at least 1. A flood
        /// does not keep other sources waiting.
        public var budget = 64
        /// The most bytes that wait to be sent; 256 KiB unless set. Each datagram counts for its bytes and about 50
        /// more. A single one may always wait.
        public var maximumOutput = 256 * 1024
        /// Whether an IPv6 socket has IPv4 peers as well.
        public var isDualStack = true
        /// Whether other sockets may be bound to the same address (`SO_REUSEADDR`): those of one multicast group. A
        /// datagram to a group goes to all of them, any other to one.
        public var reusesAddress = false
        /// Whether other processes may be bound to the same port. The system spreads the peers over them.
        public var reusesPort = false
        /// Whether datagrams may be sent to broadcast addresses; without it they fail with `EACCES`.
        public var allowsBroadcast = false
        /// Whether datagrams longer than the path allows are sent in pieces; if not, they fail with `EMSGSIZE`.
        public var allowsFragments = true
        /// The number of hops that a datagram to a group may make; 1 unless set: it stays in the local network.
        public var multicastHops: Int32 = 1
        /// Whether members of a group on this machine receive its datagrams to the group.
        public var multicastLoops = true
        /// The bytes that the system keeps until they are received, with its own bookkeeping; by default the
        /// system chooses. More datagrams are lost without a report.
        public var receiveBufferSize: Int32?
        /// The bytes that the system keeps until they are sent; by default the system chooses.
        public var sendBufferSize: Int32?
        /// Whether to replace the path of a Unix socket on which no process answers. A file that is no socket is never
        /// replaced.
        public var replacesStalePath = true
        /// The permissions of the path of a Unix socket, regardless of the process's umask. Write permission allows a
        /// process to send to it. `0o600` unless set: this user's processes.
        public var permissions: UInt32 = 0o600

        /// The defaults.
        public init() {}
    }
}
