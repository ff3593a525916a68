@_spi(Ports) internal import RunLoopUnix

extension SocketTable {
    /// Returns the socket that receives a connection to an address. Among several, chance decides.
    func listener(at address: Endpoint) -> SimulatedSocket? {
        let listening = sockets(SimulatedSocket.self, at: address).filter { $0.isListening }
        guard listening.count > 1 else { return listening.first }
        return listening[
            network.chance.outcome(on: name, "chooses a listener", usual: 0, in: 0...(listening.count - 1))]
    }

    /// Returns the datagram socket at a path.
    func datagramSocket(at path: Endpoint) -> SimulatedDatagramSocket? {
        sockets(SimulatedDatagramSocket.self, at: path).first
    }

    /// Returns the socket that receives a datagram: as on Linux, one connected to the sender, or else one bound to
    /// exactly this address, and among equal ones the last to be bound. Among sockets that share a port, chance
    /// decides.
    func datagramSocket(at address: Endpoint, from sender: Endpoint) -> SimulatedDatagramSocket? {
        let ranked = sockets(SimulatedDatagramSocket.self, at: address).map { ($0, $0.rank(for: sender)) }
        guard let best = ranked.map(\.1).max(), best >= 0 else { return nil }
        let receivers = ranked.filter { $0.1 == best }.map(\.0)
        guard receivers.count > 1, receivers.allSatisfy({ $0.reusesPort }) else { return receivers.last }
        return receivers[
            network.chance.outcome(on: name, "chooses a socket", usual: 0, in: 0...(receivers.count - 1))]
    }

    /// Returns the sockets that receive datagrams to a group, or to all hosts.
    func datagramSockets(at address: Endpoint) -> [SimulatedDatagramSocket] {
        sockets(SimulatedDatagramSocket.self, at: address).filter {
            address.isBroadcast || $0.groups.contains(address.hostText)
        }
    }
}

extension SimulatedDatagramSocket {
    /// Returns the rank of the socket as the receiver of a datagram; negative if it does not receive it.
    fileprivate func rank(for sender: Endpoint) -> Int {
        if let connectedAddress, connectedAddress != sender { return -1 }
        return (connectedAddress == nil ? 0 : 4) + (localAddress.isWildcard ? 0 : 2) + (family == sender.family ? 1 : 0)
    }
}
