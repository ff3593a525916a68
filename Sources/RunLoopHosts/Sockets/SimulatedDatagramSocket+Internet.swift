internal import Glibc
internal import RunLoopCore
internal import RunLoopSimulation
internal import RunLoopUnix

extension SimulatedDatagramSocket {
    /// The largest datagram of UDP: as long as a packet may be, with the headers.
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

    /// As on Linux, a socket has a port from its first use on.
    private func bindUnlessBound() {
        if !isBound { _ = bindToPlace(of: localAddress) }
    }

    func connectInternet(to address: Endpoint) -> Int32 {
        bindUnlessBound()
        guard let route = route(to: address) else { return -1 }
        (localAddress, connectedAddress) = (route.source, route.target)
        return 0
    }

    /// The address that a datagram goes to, and the one that its receiver sees.
    private func route(to address: Endpoint) -> (target: Endpoint, source: Endpoint)? {
        guard address.family == family || (family == AF_INET6 && address.family == AF_INET) else {
            return failure(EAFNOSUPPORT)
        }
        let address = address.withoutMapping
        let target = address.isWildcard ? address.loopback : address
        guard !target.isBroadcast || option(SOL_SOCKET, SO_BROADCAST) == 1 else { return failure(EACCES) }
        guard let source = source(for: target) else { return failure(ENETUNREACH) }
        return (target, source)
    }

    /// The address that a receiver sees; `nil` if there is no way to it.
    private func source(for target: Endpoint) -> Endpoint? {
        let isForMany = target.isMulticast || target.isBroadcast
        let other = isForMany ? nil : table.table(at: target)
        guard isForMany || other != nil else { return nil }
        guard localAddress.isWildcard else { return localAddress }
        let host = other === table ? target.hostText : table.address(of: target.family)
        return host.map { try! Endpoint($0, port: localAddress.port!) }
    }

    func sendInternet(_ bytes: UnsafeRawBufferPointer, to address: Endpoint?) -> Int {
        bindUnlessBound()
        guard bytes.count <= 0xffff || family == AF_INET6 else { return failure(EMSGSIZE) }
        if address?.port == 0 { return failure(EINVAL) }
        guard let address = address ?? connectedAddress else { return failure(EDESTADDRREQ) }
        guard let (target, source) = route(to: address) else { return -1 }
        guard bytes.count <= mostBytes else { return tooLong(for: target) }
        if let reason = reasonAgainstSending() { return failure(reason) }
        let bytes = Array(bytes)
        if target.isMulticast || target.isBroadcast {
            sendToAll(bytes, to: target, from: source)
            return bytes.count
        }
        let path = NetworkPath(from: table, to: table.table(at: target)!)
        if refusesFragments, network.packets(bytes.count, to: target, on: path) > 1 { return tooLong(for: target) }
        network.carry(bytes, to: target, on: path) { [weak self, network] in
            guard let other = path.to as? SocketTable else { return }
            if let receiver = other.datagramSocket(at: target, from: source) {
                return receiver.accept(bytes, from: source)
            }
            network.carry([], to: source, on: path.back) { [weak self] in self?.wasRefused(by: target) }
        }
        return bytes.count
    }

    private func tooLong(for target: Endpoint) -> Int {
        // As on Linux, an IPv4 socket notes only the port that it is connected to.
        let port = target.family == AF_INET ? connectedAddress?.port ?? 0 : target.port!
        note(QueuedError(errno: EMSGSIZE, peer: target.with(port: port), isLocal: true))
        return failure(EMSGSIZE)
    }

    /// Sends to a group, or to all hosts. Nobody refuses that.
    private func sendToAll(_ bytes: [UInt8], to target: Endpoint, from source: Endpoint) {
        let (family, isGroup) = (target.family, target.isMulticast)
        let isLocal = isGroup && option(of: family, six: IPV6_MULTICAST_HOPS, four: Int32(IP_MULTICAST_TTL)) == 0
        let loops = !isGroup || option(of: family, six: IPV6_MULTICAST_LOOP, four: Int32(IP_MULTICAST_LOOP)) == 1
        for case let other as SocketTable in network.nodes {
            guard other === table ? loops : !isLocal else { continue }
            network.carry(bytes, to: target, on: NetworkPath(from: table, to: other)) {
                for receiver in other.datagramSockets(at: target) { receiver.accept(bytes, from: source) }
            }
        }
    }

    /// A simulated machine has one network, whatever the name of the interface.
    func changeMembership(joins: Bool, group: Endpoint, interface: String?) -> Int32 {
        guard group.family == family else { return failure(ENOPROTOOPT) }
        guard group.isMulticast else { return failure(EINVAL) }
        if joins { return groups.insert(group.hostText).inserted ? 0 : failure(EADDRINUSE) }
        return groups.remove(group.hostText) != nil ? 0 : failure(EADDRNOTAVAIL)
    }
}

extension Endpoint {
    /// Whether it stands for a group.
    var isMulticast: Bool {
        let host = hostText
        if family == AF_INET6 { return host.hasPrefix("ff") && !host.hasPrefix("ff:") }
        return (224...239).contains(host.prefix { $0 != "." }.reduce(0) { $0 * 10 + ($1.wholeNumberValue ?? 0) })
    }

    /// Whether it stands for all hosts of a network.
    var isBroadcast: Bool { hostText == "255.255.255.255" }

    /// An IPv4 address as an IPv6 socket sees it.
    func mapped(for family: Int32) -> Endpoint {
        family == self.family ? self : try! Endpoint("::ffff:" + hostText, port: port!)
    }

    /// The IPv4 address, if it is one as an IPv6 socket sees it.
    fileprivate var withoutMapping: Endpoint {
        let host = hostText
        guard host.hasPrefix("::ffff:"), host.contains(".") else { return self }
        return try! Endpoint(String(host.dropFirst(7)), port: port!)
    }
}
