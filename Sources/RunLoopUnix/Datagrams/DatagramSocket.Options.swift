extension DatagramSocket {
    /// The options of a datagram socket. A value and `Sendable`.
    public struct Options: Sendable {
        /// The maximum number of bytes received from a datagram; the rest of a longer one is lost, and
        /// ``Header/isTruncated`` is set. At least 1; by default 65,535, which truncates no UDP datagram.
        public var maximumSize = 65_535
        /// The maximum number of datagrams that a pass receives, and that it sends, so that a flood does not starve
        /// other sources. At least 1; by default 64.
        public var budget = 64
        /// The maximum number of bytes that wait to be sent; by default 256 KiB. Each datagram counts for its bytes and
        /// about 50 more. A single datagram may always wait.
        public var maximumOutput = 256 * 1024
        /// A Boolean value that indicates whether an IPv6 socket also has IPv4 peers.
        public var isDualStack = true
        /// A Boolean value that indicates whether other sockets may be bound to the same address (`SO_REUSEADDR`), for
        /// example to share a multicast group. A datagram to a group goes to all of them, any other to one.
        public var reusesAddress = false
        /// A Boolean value that indicates whether other processes may be bound to the same port. The system spreads the
        /// peers over them.
        public var reusesPort = false
        /// A Boolean value that indicates whether datagrams may be sent to broadcast addresses; if not, they fail with
        /// `EACCES`.
        public var allowsBroadcast = false
        /// A Boolean value that indicates whether datagrams too long for the path are fragmented; if not, they fail
        /// with `EMSGSIZE`.
        public var allowsFragments = true
        /// The number of hops that a multicast datagram may make; by default 1, which keeps it in the local network.
        public var multicastHops: Int32 = 1
        /// A Boolean value that indicates whether group members on this machine receive the socket's datagrams to the
        /// group.
        public var multicastLoops = true
        /// The size in bytes of the system's receive buffer, including its bookkeeping; by default the system chooses.
        /// Datagrams that do not fit are lost without a report.
        public var receiveBufferSize: Int32?
        /// The size in bytes of the system's send buffer; by default the system chooses.
        public var sendBufferSize: Int32?
        /// A Boolean value that indicates whether to replace the path of a Unix socket on which no process answers. A
        /// file that is not a socket is never replaced.
        public var replacesStalePath = true
        /// The permissions of the path of a Unix socket, regardless of the process's umask. Write permission allows a
        /// process to send to the socket. By default `0o600`, which admits this user's processes.
        public var permissions: UInt32 = 0o600

        /// Creates the default options.
        public init() {}
    }
}
