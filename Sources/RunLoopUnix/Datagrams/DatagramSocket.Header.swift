extension DatagramSocket {
    /// The metadata of a received datagram. A value and `Sendable`.
    public struct Header: Sendable {
        /// The sender; ``Endpoint/unnamed`` for an unnamed Unix socket.
        public let sender: Endpoint
        /// The local address that the datagram was sent to, with the socket's port. Send answers from this address: on
        /// a machine with several addresses, a sender may reject an answer from another. For multicast and broadcast
        /// datagrams, the address from which the system would answer. `nil` if the system does not report an address:
        /// for a Unix socket, and for an IPv6 group.
        public let localAddress: Endpoint?
        /// The number of bytes that the sender has sent.
        public let length: Int
        /// A Boolean value that indicates whether bytes were lost because the datagram is longer than
        /// ``Options/maximumSize``.
        public let isTruncated: Bool
        /// The type of service of IPv4, or the traffic class of IPv6: the upper six bits are the class of the packet,
        /// and the lower two the congestion mark (ECN): 0 if the sender does not use ECN, 1 or 2 if it does, 3 if a
        /// router on the path was congested. 0 for a Unix socket.
        public let typeOfService: UInt8
        /// The interface at which the datagram arrived; 0 if unknown.
        @_spi(Ports) public let interface: UInt32

        init(_ slot: DatagramSlot, port: UInt16) {
            (sender, length, isTruncated) = (slot.address, slot.length, slot.length > slot.bytes.count)
            localAddress = slot.localAddress.known?.with(port: port)
            typeOfService = UInt8(truncatingIfNeeded: max(0, slot.typeOfService))
            interface = slot.interface
        }
    }
}
