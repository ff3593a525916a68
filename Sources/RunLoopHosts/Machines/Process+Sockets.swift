internal import Glibc
internal import RunLoopCore
@_spi(Ports) internal import RunLoopUnix

extension Process {
    private func socket(of descriptor: Int32) -> (any SocketCalls)? {
        guard let target = target(of: descriptor) else { return nil }
        return target as? any SocketCalls ?? failure(ENOTSOCK)
    }

    func socket(_ family: Int32) -> Int32 { descriptors.add(newSocket(family)) }

    private func newSocket(_ family: Int32) -> SimulatedSocket {
        let socket = SimulatedSocket(family, in: machine.sockets)
        socket.owner = SimulatedSocket.Owner(process: processIdentifier, user: user.identifier, group: user.group)
        return socket
    }

    func isSocket(_ descriptor: Int32) -> Bool { socket(of: descriptor)?.isSocket ?? false }

    func setOption(_ descriptor: Int32, _ level: Int32, _ option: Int32, _ value: Int32) -> Int32 {
        socket(of: descriptor)?.setOption(level, option, value) ?? -1
    }

    func option(_ descriptor: Int32, _ level: Int32, _ option: Int32) -> Int32? {
        socket(of: descriptor)?.option(level, option)
    }

    func bind(_ descriptor: Int32, to address: Endpoint) -> Int32 {
        guard let socket = socket(of: descriptor) else { return -1 }
        if socket is BoundSocket, let reason = reason(againstBindingTo: address) { return failure(reason) }
        return socket.bind(to: address)
    }

    /// Returns the reason why the process's user may not bind a socket to an address that others may bind to.
    private func reason(againstBindingTo address: Endpoint) -> Int32? {
        guard !user.isRoot, machine.sockets.reason(against: address) == nil else { return nil }
        if let path = filePath(of: address) { return machine.disk.reason(againstNewFileAt: path, as: user) }
        return address.port.map { 1..<1_024 ~= $0 } == true ? EACCES : nil
    }

    /// Returns the path of a socket's file, from the root; `nil` for other addresses.
    private func filePath(of address: Endpoint) -> String? {
        guard let path = address.path, !path.isEmpty, !path.hasPrefix("@") else { return nil }
        return Directories.absolute(path, from: "/")
    }

    func socketFile(at path: String) -> SocketFile? { machine.sockets.files[path] }
    func listen(_ descriptor: Int32, backlog: Int32) -> Int32 { socket(of: descriptor)?.listen(backlog: backlog) ?? -1 }

    func accept(_ descriptor: Int32, peer: inout Endpoint) -> Int32 {
        guard let listener = socket(of: descriptor) else { return -1 }
        guard let listener = listener as? SimulatedSocket else {
            return listener is SystemDescription
                ? WorldSystem.real.accept(descriptor, peer: &peer) : failure(EOPNOTSUPP)
        }
        return answer("accept", .interruptions) {
            guard descriptors.hasRoom, let connection = listener.accept() else { return -1 }
            peer = connection.peerAddress
            return descriptors.add(connection)
        }
    }

    func connect(_ descriptor: Int32, to address: Endpoint) -> Int32 {
        guard let socket = socket(of: descriptor) else { return -1 }
        if let path = filePath(of: address), machine.disk.reason(againstUseOf: path, as: user) == EACCES {
            return failure(EACCES)
        }
        return answer("connect") { socket.connect(to: address) }
    }

    func localAddress(of descriptor: Int32) -> Endpoint { socket(of: descriptor)?.localAddress ?? Endpoint() }
    func peerAddress(of descriptor: Int32) -> Endpoint { socket(of: descriptor)?.connectedAddress ?? Endpoint() }
    func hasInput(_ descriptor: Int32) -> Bool { socket(of: descriptor)?.hasInput ?? false }
    func endWriting(_ descriptor: Int32) { socket(of: descriptor)?.endWriting() }
    func unsentOutput(_ descriptor: Int32) -> Int { socket(of: descriptor)?.unsentOutput ?? 0 }
    func resetWhenClosed(_ descriptor: Int32) { socket(of: descriptor)?.resetWhenClosed() }
    func spreadsConnections(of loop: RunLoop) -> Bool { false }

    /// Makes two connected sockets, as `socketpair` does; a descriptor is -1 if none is left.
    func makePair() -> (Int32, Int32) {
        let one = newSocket(AF_UNIX)
        return (descriptors.add(one), descriptors.add(one.makePeer()))
    }

    /// Returns the ends of connections to another machine, including connections not yet accepted.
    func ends(ofConnectionsTo other: Machine) -> [SimulatedSocket] {
        descriptors.targets(SimulatedSocket.self).flatMap { [$0] + $0.queue }.filter { $0.peer === other.sockets }
    }

    // MARK: Datagrams

    private func datagrams(of descriptor: Int32) -> (any DatagramCalls)? {
        guard let socket = socket(of: descriptor) else { return nil }
        return socket as? any DatagramCalls ?? failure(EOPNOTSUPP)
    }

    func datagramSocket(_ family: Int32) -> Int32 {
        descriptors.add(SimulatedDatagramSocket(family, in: machine.sockets))
    }

    func receive(_ descriptor: Int32, into slots: UnsafeMutableBufferPointer<DatagramSlot>, withFacts: Bool) -> Int {
        guard let socket = datagrams(of: descriptor) else { return -1 }
        return exchange("receive from", socket) { _ in socket.receive(into: slots, withFacts: withFacts) }
    }

    func send(_ descriptor: Int32, _ slots: UnsafeMutableBufferPointer<DatagramSlot>, inSegments: Bool) -> Int {
        guard let socket = datagrams(of: descriptor) else { return -1 }
        return exchange("send to", socket) { _ in socket.send(slots, inSegments: inSegments) }
    }

    func takeQueuedError(_ descriptor: Int32) -> QueuedError? { datagrams(of: descriptor)?.takeQueuedError() }

    func changeMembership(_ descriptor: Int32, joins: Bool, group: Endpoint, interface: String?) -> Int32 {
        datagrams(of: descriptor)?.changeMembership(joins: joins, group: group, interface: interface) ?? -1
    }
}
