internal import CShims
internal import Glibc

extension RealSystem {
    func datagramSocket(_ family: Int32) -> Int32 {
        socket(family, SOCK_DGRAM)
    }

    func socket(_ family: Int32, _ type: __socket_type) -> Int32 {
        Glibc.socket(family, Int32(type.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
    }

    func receive(
        _ descriptor: Int32, into slots: UnsafeMutableBufferPointer<DatagramSlot>, withFacts: Bool
    ) -> Int {
        withSystemDatagrams(slots, receives: true) { datagrams in
            let count = Int(rlk_receive_datagrams(descriptor, datagrams, Int32(slots.count), withFacts ? 1 : 0))
            assert(count <= slots.count, "the system has filled more slots than there are")
            for index in 0..<max(0, count) {
                // A datagram without a sender is from an unnamed Unix socket.
                slots[index].address.wasFilled(to: datagrams[index].address_length, orIs: .unnamed)
                slots[index].localAddress.wasFilled(to: datagrams[index].local_length, orIs: Endpoint())
                slots[index].length = datagrams[index].length
                slots[index].typeOfService = datagrams[index].type_of_service
                slots[index].interface = datagrams[index].interface
                slots[index].segmentSize = datagrams[index].segment_size
            }
            return count
        }
    }

    func send(
        _ descriptor: Int32, _ slots: UnsafeMutableBufferPointer<DatagramSlot>, inSegments: Bool
    ) -> Int {
        withSystemDatagrams(slots, receives: false) {
            Int(rlk_send_datagrams(descriptor, $0, Int32(slots.count), inSegments ? 1 : 0))
        }
    }

    /// Describes datagrams to the system. Allocates nothing on the heap.
    private func withSystemDatagrams(
        _ slots: UnsafeMutableBufferPointer<DatagramSlot>, receives: Bool,
        _ body: (UnsafeMutablePointer<rlk_datagram>) -> Int
    ) -> Int {
        let room = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeTemporaryAllocation(of: rlk_datagram.self, capacity: slots.count) { datagrams in
            for index in slots.indices {
                let slot = slots.baseAddress! + index
                datagrams[index] = rlk_datagram(
                    bytes: slot.pointee.bytes.baseAddress, count: slot.pointee.bytes.count, address: slot,
                    address_length: receives ? room : slot.pointee.address.length, length: 0,
                    local_address: UnsafeMutableRawPointer(slot) + MemoryLayout<Endpoint>.stride,
                    local_length: receives ? 0 : slot.pointee.localAddress.length, interface: 0,
                    type_of_service: receives ? -1 : slot.pointee.typeOfService, segment_size: 0)
            }
            assert(slots.count > 0, "no datagram is sent or received")
            return body(datagrams.baseAddress!)
        }
    }

    func takeQueuedError(_ descriptor: Int32) -> QueuedError? {
        var (errno, isLocal, isThere) = (Int32(0), Int32(0), Int32(0))
        let peer = Endpoint { address, length in
            isThere = rlk_take_queued_error(descriptor, &errno, &isLocal, address, &length)
        }
        return isThere == 0 ? nil : QueuedError(errno: errno, peer: peer, isLocal: isLocal != 0)
    }

    func changeMembership(
        _ descriptor: Int32, joins: Bool, group: Endpoint, interface: String?
    ) -> Int32 {
        var request = group_req()
        if let interface {
            request.gr_interface = if_nametoindex(interface)
            if request.gr_interface == 0 { return -1 }
        }
        group.withSystemBytes { bytes in withUnsafeMutableBytes(of: &request.gr_group) { $0.copyMemory(from: bytes) } }
        let level = group.family == AF_INET6 ? IPPROTO_IPV6 : IPPROTO_IP
        let option = joins ? MCAST_JOIN_GROUP : MCAST_LEAVE_GROUP
        return setsockopt(descriptor, Int32(level), option, &request, socklen_t(MemoryLayout<group_req>.size))
    }
}
