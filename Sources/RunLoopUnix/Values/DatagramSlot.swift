/// A datagram in the batch that a system call receives or sends.
@_spi(Ports) public struct DatagramSlot {
    static let mostPerCall = 16

    // The addresses come first, because system calls write them at the beginning of the slot.
    /// The sender or the receiver; empty for the connected peer.
    public var address = Endpoint()
    /// The local address that the datagram was sent to or leaves from, whose port is ignored; empty if unknown or left
    /// to the system.
    public var localAddress = Endpoint()
    /// The memory to receive into, or the bytes to send.
    public var bytes = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    /// The length of a received datagram, which may exceed the memory.
    public var length = 0
    /// The type of service of IPv4, or the traffic class of IPv6; negative if unknown or left to the socket.
    public var typeOfService: Int32 = -1
    /// The interface at which the datagram arrived; 0 if unknown.
    public var interface: UInt32 = 0
    /// The size of each received datagram if the slot holds several in a row, of which the last may be shorter; 0 for a
    /// single datagram.
    public var segmentSize = 0

    /// Creates a slot without memory.
    public init() {}

    /// Returns the datagram that begins at an offset of the slot's bytes.
    func segment(at offset: Int) -> DatagramSlot {
        guard segmentSize > 0 else { return self }
        assert(offset >= 0 && offset <= length, "a segment begins beyond its datagrams")
        var segment = self
        segment.length = min(segmentSize, length - offset)
        segment.bytes = UnsafeMutableRawBufferPointer(rebasing: bytes[offset..<offset + segment.length])
        return segment
    }

    /// The bytes of a received datagram.
    var content: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: bytes[..<min(length, bytes.count)]) }
}

/// An error from a socket's queue, about a datagram sent earlier.
@_spi(Ports) public struct QueuedError {
    /// The system's reason.
    public let errno: Int32
    /// The receiver of the datagram.
    public let peer: Endpoint
    /// True if the call that sent the datagram has already reported the error.
    public let isLocal: Bool

    /// Creates an error from its parts.
    public init(errno: Int32, peer: Endpoint, isLocal: Bool) {
        (self.errno, self.peer, self.isLocal) = (errno, peer, isLocal)
    }
}
