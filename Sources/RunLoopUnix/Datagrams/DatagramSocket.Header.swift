extension DatagramSocket {
    /// The facts about a received datagram, besides its bytes. A value and `Sendable`.
    public struct Header: Sendable {
        /// The sender; ``Endpoint/unnamed`` for a Unix socket without a name.
        public let sender: Endpoint
        /// The number of bytes that the sender has sent.
        public let length: Int
        /// Whether some of them are lost, because the datagram is longer than ``Options/maximumSize``.
        public let isTruncated: Bool

        init(_ slot: DatagramSlot) {
            (sender, length, isTruncated) = (slot.address, slot.length, slot.length > slot.bytes.count)
        }
    }
}
