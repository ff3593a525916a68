internal import Glibc
internal import RunLoopUnix

extension SimulatedDatagramSocket {
    /// The number of datagrams in a receiver's queue, one more than its limit, as on Linux.
    private static let mostArrivals = 11

    /// Returns the charge of `count` bytes in the sender's buffer. Linux counts the memory that it takes for them: one
    /// piece whose size is a power of two, pages for the rest of a long datagram, and its notes about each.
    static func chargeOfUnix(_ count: Int) -> Int {
        let (page, mostPages, mostWithoutPages, notes, header) = (4_096, 17, 16_064, 320, 256)
        let rest = max(count - mostWithoutPages, 0)
        let pages = min((rest + page - 1) / page, mostPages) * page
        let needed = max(count - pages + notes, 512)
        let piece = 1 << (Int.bitWidth - (needed - 1).leadingZeroBitCount)
        return piece + pages + header
    }

    func bindUnix(to address: Endpoint) -> Int32 {
        guard let path = address.path, !path.isEmpty else { return failure(EINVAL) }
        if let reason = table.reason(against: address) { return failure(reason) }
        if table.files[path] != nil, !path.hasPrefix("@") { return failure(EADDRINUSE) }
        guard !isBound else { return failure(EINVAL) }
        return bindToPlace(of: address) ? 0 : failure(EADDRINUSE)
    }

    func connectUnix(to address: Endpoint) -> Int32 {
        guard let other = find(address) else { return -1 }
        let former = peer
        (peer, connectedAddress) = (other, address)
        guard other !== former else { return 0 }
        other.connected.append(self)
        former?.connected.removeAll { $0 === self }
        if let former { disconnected(from: former) }
        tell()
        return 0
    }

    /// Drops the datagrams of a former peer, which learns of it if it was connected to this socket.
    private func disconnected(from former: SimulatedDatagramSocket) {
        guard hasInput else { return }
        dropArrivals()
        if former.isOpen, former.peer === self { former.error = ECONNRESET }
        tell()
    }

    /// Returns the socket at an address, if it receives from this one.
    private func find(_ address: Endpoint) -> SimulatedDatagramSocket? {
        guard let path = address.path, !path.isEmpty else { return failure(EINVAL) }
        if let reason = table.reason(againstConnectionTo: path, isDatagram: true) { return failure(reason) }
        guard let other = table.datagramSocket(at: address) else { return failure(ECONNREFUSED) }
        return other.peer == nil || other.peer === self ? other : failure(EPERM)
    }

    /// Returns `true` if no further datagram of a sender fits. Two sockets connected to each other only have their send
    /// buffers.
    func isFull(for sender: SimulatedDatagramSocket) -> Bool {
        isOpen && self !== sender && peer !== sender && arrivals.count >= Self.mostArrivals
    }

    func sendUnix(_ bytes: UnsafeRawBufferPointer, to address: Endpoint?) -> Int {
        if let address, address.path?.isEmpty != false { return failure(EINVAL) }
        guard bytes.count <= sendBuffer - 32 else { return failure(EMSGSIZE) }
        if let reason = reasonAgainstSending() { return failure(reason) }
        guard !hasTooMuchUnread else { return failure(EAGAIN) }
        let other: SimulatedDatagramSocket
        if let address {
            guard let found = find(address) else { return -1 }
            other = found
        } else {
            guard let peer else { return failure(ENOTCONN) }
            other = peer
            guard other.peer == nil || other.peer === self else { return failure(EPERM) }
            guard other.isOpen else {
                (self.peer, connectedAddress) = (nil, nil)
                disconnected(from: other)
                return failure(ECONNREFUSED)
            }
        }
        guard !other.isFull(for: self) else { return failure(EAGAIN) }
        other.add(Arrival(Array(bytes), fromUnix: self))
        tell()
        return bytes.count
    }
}
