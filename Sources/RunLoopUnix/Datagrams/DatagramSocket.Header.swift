extension DatagramSocket {
    /// The facts about a received datagram, besides its bytes. A value and `Sendable`.
    public struct Header: Sendable {
        /// The sender; ``Endpoint/unnamed`` for a Unix socket without a name.
        public let sender: Endpoint
        /// The address of this machine that the datagram was sent to, with the socket's port. Send the answer from it,
        /// or a sender that asked at one of several addresses of the machine may not accept the answer. For a datagram
        /// to a group, or to all hosts, the address from which the system would answer. `nil` if the system does not
        /// tell: for a Unix socket, and for an IPv6 group.
        public let localAddress: Endpoint?
        /// The number of bytes that the sender has sent.
        public let length: Int
        /// Whether some of them are lost, because the datagram is longer than ``Options/maximumSize``.
        public let isTruncated: Bool
        /// The type of service of IPv4, or the traffic class of IPv6: the upper six bits tell the class of the packet,
        /// and the lower two about congestion (ECN): 0 from a sender that does not ask, 1 or 2 from one that does, 3 if
        /// a router on the way was congested. 0 for a Unix socket.
        public let typeOfService: UInt8
        /// The interface at which it has arrived; 0 if that is not known.
        package let interface: UInt32

        init(_ slot: DatagramSlot, port: UInt16) {
            (sender, length, isTruncated) = (slot.address, slot.length, slot.length > slot.bytes.count)
            localAddress = slot.localAddress.known?.with(port: port)
            typeOfService = UInt8(truncatingIfNeeded: max(0, slot.typeOfService))
            interface = slot.interface
        }
    }
}
