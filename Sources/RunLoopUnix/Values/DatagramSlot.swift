/// A datagram that a system call receives or sends, one of a batch.
package struct DatagramSlot {
    package static let mostPerCall = 16

    // First, because system calls write the address at the slot's own address.
    /// The sender or the receiver; empty for the receiver that the socket is connected to.
    package var address = Endpoint()
    /// The room to receive it, or the bytes to send.
    package var bytes = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    /// The length of a received datagram, which may be greater than the room.
    package var length = 0

    package init() {}

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
