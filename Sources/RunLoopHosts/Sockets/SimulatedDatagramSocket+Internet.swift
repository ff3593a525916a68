internal import Glibc
internal import RunLoopCore
internal import RunLoopSimulation
@_spi(Ports) internal import RunLoopUnix

/// The source and the target of a datagram of UDP, and its type of service.
struct DatagramWay {
    let source: Endpoint
    let target: Endpoint
    let typeOfService: Int32
}

extension SimulatedDatagramSocket {
    /// The largest datagram of UDP, as long as a packet may be with the headers.
    private var mostBytes: Int { family == AF_INET6 ? 65_527 : 65_507 }

    func bindInternet(to address: Endpoint) -> Int32 {
        guard address.family == family else {
            return failure(family == AF_INET6 && address.family == AF_INET ? EINVAL : EAFNOSUPPORT)
        }
        if isBound && family == AF_INET6 { return failure(EINVAL) }
        if !address.isMulticast, let reason = table.reason(against: address) { return failure(reason) }
        guard !isBound else { return failure(EINVAL) }
        return bindToPlace(of: address) ? 0 : failure(EADDRINUSE)
    }

    /// Binds the socket to a port at its first use, as on Linux.
    private func bindUnlessBound() {
        if !isBound { _ = bindToPlace(of: localAddress) }
    }

    func connectInternet(to address: Endpoint) -> Int32 {
        bindUnlessBound()
        guard let route = route(to: address) else { return -1 }
        (localAddress, connectedAddress) = (route.source, route.target)
        return 0
    }

    /// Returns the address that a datagram goes to, and the source that its receiver sees.
    ///
    /// - Parameter wanted: the address from which the datagram is to leave; empty for none.
    private func route(
        to address: Endpoint, from wanted: Endpoint = Endpoint()
    ) -> (target: Endpoint, source: Endpoint)? {
        guard address.family == family || (family == AF_INET6 && address.family == AF_INET) else {
            return failure(EAFNOSUPPORT)
        }
        let address = address.withoutMapping
        let wanted = wanted.withoutMapping
        if wanted.port != nil {
            guard wanted.family == address.family else { return failure(EINVAL) }
            let isOwn = wanted.isWildcard || table.owns(wanted)
            guard isOwn else { return failure(wanted.family == AF_INET ? ENETUNREACH : EINVAL) }
        }
        // As on Linux, a wildcard address replaces an IPv4 socket's own address, but not an IPv6 socket's.
        let isReplaced = wanted.port != nil && !(wanted.family == AF_INET6 && wanted.isWildcard)
        let own = isReplaced ? wanted : localAddress
        let target = address.isWildcard ? address.receiver(of: own) : address
        guard !target.isBroadcast || option(SOL_SOCKET, SO_BROADCAST) == 1 else { return failure(EACCES) }
        guard let source = source(for: target, own) else { return failure(ENETUNREACH) }
        return (target, source)
    }

    /// Returns the source that a receiver sees; `nil` if no way leads there.
    private func source(for target: Endpoint, _ own: Endpoint) -> Endpoint? {
        let isForMany = target.isMulticast || target.isBroadcast
        let other = isForMany ? nil : table.table(at: target)
        guard isForMany || other != nil else { return nil }
        guard own.isWildcard else { return own.with(port: localAddress.port!) }
        let host = other === table ? target.hostText : table.address(of: target.family)
        return host.map { try! Endpoint($0, port: localAddress.port!) }
    }

    func sendInternet(_ bytes: UnsafeRawBufferPointer, to address: Endpoint?, _ slot: DatagramSlot) -> Int {
        bindUnlessBound()
        guard bytes.count <= 0xffff || family == AF_INET6 else { return failure(EMSGSIZE) }
        if address?.port == 0 { return failure(EINVAL) }
        guard let address = address ?? connectedAddress else { return failure(EDESTADDRREQ) }
        guard let (target, source) = route(to: address, from: slot.localAddress) else { return -1 }
        guard bytes.count <= mostBytes else { return tooLong(for: target) }
        if let reason = reasonAgainstSending() { return failure(reason) }
        let bytes = Array(bytes)
        let usual = option(of: target.family, six: IPV6_TCLASS, four: Int32(IP_TOS)) ?? 0
        let typeOfService = slot.typeOfService < 0 ? usual : slot.typeOfService
        let way = DatagramWay(source: source, target: target, typeOfService: typeOfService)
        if target.isMulticast || target.isBroadcast {
            sendToAll(bytes, on: way)
            return bytes.count
        }
        let path = NetworkPath(from: table, to: table.table(at: target)!)
        if refusesFragments, network.packets(bytes.count, to: target, on: path) > 1 { return tooLong(for: target) }
        network.carry(bytes, to: target, on: path) { [weak self, network] in
            guard let other = path.to as? SocketTable else { return }
            if let receiver = other.datagramSocket(at: target, from: source) {
                return receiver.accept(bytes, on: way)
            }
            network.carry([], to: source, on: path.back) { [weak self] in self?.wasRefused(on: way) }
        }
        return bytes.count
    }

    /// Writes the facts about a received datagram into a slot.
    func note(_ way: DatagramWay?, in slot: inout DatagramSlot) {
        (slot.localAddress, slot.typeOfService) = (Endpoint(), -1)
        guard let way else { return }
        let target = way.target
        if option(of: family, six: IPV6_RECVPKTINFO, four: Int32(IP_PKTINFO)) == 1 {
            // As on Linux, the machine's own address for a datagram to many receivers, which IPv6 does not report.
            let isForMany = target.isMulticast || target.isBroadcast
            let answers = isForMany && family == AF_INET ? table.address(of: family) : nil
            let address = isForMany ? answers.map { try! Endpoint($0, port: 0) } : target.mapped(for: family)
            slot.localAddress = address?.with(port: 0) ?? Endpoint()
        }
        if option(of: target.family, six: IPV6_RECVTCLASS, four: Int32(IP_RECVTOS)) == 1 {
            slot.typeOfService = way.typeOfService
        }
    }

    private func tooLong(for target: Endpoint) -> Int {
        // As on Linux, an IPv4 socket notes only the port that it is connected to.
        let port = target.family == AF_INET ? connectedAddress?.port ?? 0 : target.port!
        note(QueuedError(errno: EMSGSIZE, peer: target.with(port: port), isLocal: true))
        return failure(EMSGSIZE)
    }

    /// Sends to a group, or to all hosts. The send is never refused.
    private func sendToAll(_ bytes: [UInt8], on way: DatagramWay) {
        let target = way.target
        let (family, isGroup) = (target.family, target.isMulticast)
        let isLocal = isGroup && option(of: family, six: IPV6_MULTICAST_HOPS, four: Int32(IP_MULTICAST_TTL)) == 0
        let loops = !isGroup || option(of: family, six: IPV6_MULTICAST_LOOP, four: Int32(IP_MULTICAST_LOOP)) == 1
        for case let other as SocketTable in network.nodes {
            guard other === table ? loops : !isLocal else { continue }
            network.carry(bytes, to: target, on: NetworkPath(from: table, to: other)) {
                for receiver in other.datagramSockets(at: target) { receiver.accept(bytes, on: way) }
            }
        }
    }

    /// Joins or leaves a group. A simulated machine has one network, whatever the name of the interface.
    func changeMembership(joins: Bool, group: Endpoint, interface: String?) -> Int32 {
        guard group.family == family else { return failure(ENOPROTOOPT) }
        guard group.isMulticast else { return failure(EINVAL) }
        if joins { return groups.insert(group.hostText).inserted ? 0 : failure(EADDRINUSE) }
        return groups.remove(group.hostText) != nil ? 0 : failure(EADDRNOTAVAIL)
    }
}

extension Endpoint {
    /// `true` if the address stands for a group.
    var isMulticast: Bool {
        let host = hostText
        if family == AF_INET6 { return host.hasPrefix("ff") && !host.hasPrefix("ff:") }
        return (224...239).contains(host.prefix { $0 != "." }.reduce(0) { $0 * 10 + ($1.wholeNumberValue ?? 0) })
    }

    /// `true` if the address stands for all hosts of a network.
    var isBroadcast: Bool { hostText == "255.255.255.255" }

    /// Returns the address to which a datagram to the wildcard goes, as on Linux: with IPv4 its source.
    fileprivate func receiver(of own: Endpoint) -> Endpoint {
        family == AF_INET && own.family == AF_INET && !own.isWildcard ? own.with(port: port!) : loopback
    }

    /// Returns an IPv4 address as an IPv6 socket sees it.
    func mapped(for family: Int32) -> Endpoint {
        family == self.family ? self : try! Endpoint("::ffff:" + hostText, port: port!)
    }

    /// The IPv4 address that an IPv6 socket sees as this one; otherwise the address itself.
    fileprivate var withoutMapping: Endpoint {
        let host = hostText
        guard host.hasPrefix("::ffff:"), host.contains(".") else { return self }
        return try! Endpoint(String(host.dropFirst(7)), port: port!)
    }
}
