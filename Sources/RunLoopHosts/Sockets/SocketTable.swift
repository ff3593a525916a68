internal import Glibc
internal import RunLoopUnix

/// The sockets of a machine that are bound to its ports and paths: its side of the network.
final class SocketTable: NetworkNode {
    let network: Network
    private let disk: SimulatedDisk
    /// The bound sockets, by place; several at one place if all of them allow it.
    private var bound: [Place: [SimulatedSocket]] = [:]
    /// The paths at which sockets were bound: a path stays when its socket is closed.
    var files: [String: SocketFile] = [:]
    private var nextFile: UInt64 = 1
    private var nextPort: UInt16 = 49_152

    init(_ name: String, addresses: [String], on network: Network, _ disk: SimulatedDisk) {
        (self.network, self.disk) = (network, disk)
        super.init(name, addresses: addresses)
        network.add(self)
    }

    /// The place at which a socket is bound.
    private enum Place: Hashable {
        case port(UInt16)
        case path(String)

        init?(_ address: Endpoint) {
            switch (address.path, address.port) {
            case (let path?, _) where !path.isEmpty: self = .path(path)
            case (_, let port?): self = .port(port)
            default: return nil
            }
        }
    }

    // MARK: Binding

    /// The reason why no socket can be bound to an address, even if it is free.
    func reason(against address: Endpoint) -> Int32? {
        if let path = address.path {
            guard !path.isEmpty, !path.hasPrefix("@") else { return nil }
            let reason = disk.reason(againstNewFileAt: Directories.absolute(path, from: "/"))
            return reason == EEXIST ? EADDRINUSE : reason
        }
        let isOwn = address.isWildcard || address.isLoopback || addresses.contains(address.hostText)
        return isOwn ? nil : EADDRNOTAVAIL
    }

    /// Binds a socket to the place of its local address.
    ///
    /// - Returns: `false` if the place is taken.
    func bind(_ socket: SimulatedSocket) -> Bool {
        guard let place = Place(socket.localAddress) else { return false }
        let others = bound[place, default: []]
        if case .path(let path) = place {
            guard files[path] == nil else { return false }
            files[path] = SocketFile(device: 1, inode: nextFile)
            nextFile += 1
        } else if others.contains(where: { $0.overlaps(socket) && !($0.reusesPort && socket.reusesPort) }) {
            return false
        }
        bound[place] = others + [socket]
        return true
    }

    func unbind(_ socket: SimulatedSocket) {
        guard let place = Place(socket.localAddress) else { return }
        bound[place]?.removeAll { $0 === socket }
        // A name in the abstract namespace is no file.
        if case .path(let path) = place, path.hasPrefix("@") { files[path] = nil }
    }

    func choosePort() -> UInt16 {
        repeat {
            nextPort = nextPort == .max ? 49_152 : nextPort + 1
        } while bound[.port(nextPort)]?.isEmpty == false
        return nextPort
    }

    /// Forgets the sockets, because the machine has stopped. A path stays, a name in the abstract namespace does not.
    func crash() {
        bound.removeAll()
        files = files.filter { !$0.key.hasPrefix("@") }
    }

    // MARK: Finding

    /// The table of the machine that has an address.
    func table(at address: Endpoint) -> SocketTable? { network.node(at: address, from: self) as? SocketTable }

    /// The socket that receives a connection to an address. Among several, chance decides.
    func listener(at address: Endpoint) -> SimulatedSocket? {
        let listening = Place(address).flatMap { bound[$0] }?.filter { $0.isListening && $0.covers(address) } ?? []
        guard listening.count > 1 else { return listening.first }
        return listening[
            network.chance.outcome(on: name, "chooses a listener", usual: 0, in: 0...(listening.count - 1))]
    }

    /// The reason why a connection to a path of no socket fails.
    func reason(againstConnectionTo path: String) -> Int32? {
        guard files[path] == nil, !path.hasPrefix("@") else { return nil }
        return disk.reason(againstUseOf: Directories.absolute(path, from: "/")) ?? ECONNREFUSED
    }
}

extension SimulatedSocket {
    /// Whether both sockets would get the same connections.
    fileprivate func overlaps(_ other: SimulatedSocket) -> Bool {
        if family != other.family {
            let six = family == AF_INET6 ? self : other
            return !six.isSixOnly && six.localAddress.isWildcard
        }
        return localAddress.isWildcard || other.localAddress.isWildcard
            || localAddress.hostText == other.localAddress.hostText
    }

    /// Whether it receives connections to an address.
    fileprivate func covers(_ address: Endpoint) -> Bool {
        if family != address.family { return family == AF_INET6 && !isSixOnly && localAddress.isWildcard }
        return family == AF_UNIX || localAddress.isWildcard || localAddress.hostText == address.hostText
    }
}
