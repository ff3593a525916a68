/// A datagram that a system call receives or sends, one of a batch.
package struct DatagramSlot {
    package static let mostPerCall = 16

    // The addresses are first, because system calls write them where the slot begins.
    /// The sender or the receiver; empty for the receiver that the socket is connected to.
    package var address = Endpoint()
    /// The address of this machine that it was sent to, or that it leaves from, of which the port does not matter;
    /// empty if it is not known, or left to the system.
    package var localAddress = Endpoint()
    /// The room to receive it, or the bytes to send.
    package var bytes = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    /// The length of a received datagram, which may be greater than the room.
    package var length = 0
    /// The type of service of IPv4, or the traffic class of IPv6; negative if it is not known, or left to the socket.
    package var typeOfService: Int32 = -1
    /// The interface at which it has arrived; 0 if that is not known.
    package var interface: UInt32 = 0
    /// The size of each of several received datagrams that are in the slot one after another, of which the last may be
    /// shorter; 0 for a single one.
    package var segmentSize = 0

    package init() {}

    /// The datagram that begins at an offset, of one or several.
    func segment(at offset: Int) -> DatagramSlot {
        guard segmentSize > 0 else { return self }
        var segment = self
        segment.length = min(segmentSize, length - offset)
        segment.bytes = UnsafeMutableRawBufferPointer(rebasing: bytes[offset..<offset + segment.length])
        return segment
    }

    /// The bytes of a received datagram.
    var content: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: bytes[..<min(length, bytes.count)]) }
}

/// An error from a socket's queue: the failure of a datagram that was sent before.
package struct QueuedError {
    package let errno: Int32
    /// The receiver of the datagram.
    package let peer: Endpoint
    /// Whether the call that sent the datagram has reported it already.
    package let isLocal: Bool

    package init(errno: Int32, peer: Endpoint, isLocal: Bool) {
        (self.errno, self.peer, self.isLocal) = (errno, peer, isLocal)
    }
}
