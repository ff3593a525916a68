internal import CShims
internal import Glibc

extension SystemCalls {
    /// - Parameters:
    ///   - address: the address to bind to; `nil` to let the system choose one.
    ///   - peer: the peer to connect to; `nil` for none.
    func openDatagramSocket(
        at address: Endpoint?, to peer: Endpoint?, _ options: DatagramSocket.Options
    ) throws(SystemError) -> Int32 {
        let family = (address ?? peer)!.family
        let descriptor = datagramSocket(family)
        guard descriptor >= 0 else { throw .last("open a datagram socket") }
        do throws(SystemError) {
            set(options, of: descriptor, family)
            if let address, address.path != "" {
                try bind(
                    descriptor, to: address, permissions: options.permissions,
                    replacesStale: options.replacesStalePath, probe: datagramSocket)
            }
            if let peer, connect(descriptor, to: peer) != 0 { throw .last("connect to \(peer)") }
            return descriptor
        } catch {
            close(descriptor)
            throw error
        }
    }

    /// Makes a UDP socket report the local address and the type of service of each datagram.
    ///
    /// - Parameter together: whether consecutive datagrams of one sender may be received in one piece.
    func reportFacts(of descriptor: Int32, _ family: Int32, together: Bool) {
        let (four, six) = (Int32(IPPROTO_IP), Int32(IPPROTO_IPV6))
        // An IPv6 socket may also have IPv4 peers, whose addresses it reports as IPv4-mapped IPv6 addresses.
        setOption(descriptor, four, IP_RECVTOS, 1)
        if family == AF_INET6 {
            setOption(descriptor, six, IPV6_RECVPKTINFO, 1)
            setOption(descriptor, six, IPV6_RECVTCLASS, 1)
        } else {
            setOption(descriptor, four, Int32(IP_PKTINFO), 1)
        }
        if together { setOption(descriptor, Int32(IPPROTO_UDP), Int32(RLK_UDP_GRO), 1) }
    }

    /// Returns whether a socket accepts several datagrams in one piece, as UDP sockets do if the system supports it.
    func takesSegments(_ descriptor: Int32) -> Bool {
        setOption(descriptor, Int32(IPPROTO_UDP), Int32(RLK_UDP_SEGMENT), 0) == 0
    }

    private func set(_ options: DatagramSocket.Options, of descriptor: Int32, _ family: Int32) {
        func set(_ level: Int32, _ option: Int32, _ value: Int32) {
            setOption(descriptor, level, option, value)
        }
        if let size = options.receiveBufferSize { set(SOL_SOCKET, SO_RCVBUF, size) }
        if let size = options.sendBufferSize { set(SOL_SOCKET, SO_SNDBUF, size) }
        guard family != AF_UNIX else { return }
        let (four, six) = (Int32(IPPROTO_IP), Int32(IPPROTO_IPV6))
        if options.reusesAddress { set(SOL_SOCKET, SO_REUSEADDR, 1) }
        if options.reusesPort { set(SOL_SOCKET, SO_REUSEPORT, 1) }
        if options.allowsBroadcast { set(SOL_SOCKET, SO_BROADCAST, 1) }
        // The error queue names the peer that refused a datagram. An IPv6 socket may also have IPv4 peers.
        set(four, IP_RECVERR, 1)
        let discovery = options.allowsFragments ? IP_PMTUDISC_WANT : IP_PMTUDISC_DO
        set(four, IP_MTU_DISCOVER, discovery)
        // Otherwise a socket would receive the datagrams of groups that other sockets of the machine have joined.
        set(four, Int32(IP_MULTICAST_ALL), 0)
        set(four, Int32(IP_MULTICAST_TTL), options.multicastHops)
        set(four, Int32(IP_MULTICAST_LOOP), options.multicastLoops ? 1 : 0)
        guard family == AF_INET6 else { return }
        set(six, IPV6_V6ONLY, options.isDualStack ? 0 : 1)
        set(six, IPV6_RECVERR, 1)
        set(six, IPV6_MTU_DISCOVER, discovery)
        set(six, IPV6_MULTICAST_ALL, 0)
        set(six, IPV6_MULTICAST_HOPS, options.multicastHops)
        set(six, IPV6_MULTICAST_LOOP, options.multicastLoops ? 1 : 0)
    }
}
