internal import Glibc
@_spi(Ports) internal import RunLoopUnix

/// The sockets of a machine that are bound to its ports and paths: its side of the network.
final class SocketTable: NetworkNode {
    let network: Network
    private let disk: SimulatedDisk
    /// The bound sockets, by place; several at one place if all of them allow it.
    private var bound: [Place: [BoundSocket]] = [:]
    /// The paths at which sockets were bound. A path stays when its socket is closed.
    private(set) var files: [String: SocketFile] = [:]
    private var nextFile: UInt64 = 1
    private var nextPort: UInt16 = 49_152

    init(_ name: String, addresses: [String], on network: Network, _ disk: SimulatedDisk) {
        (self.network, self.disk) = (network, disk)
        super.init(name, addresses: addresses)
        network.add(self)
    }

    private enum Place: Hashable {
        case port(UInt16, isDatagram: Bool)
        case path(String)

        init?(_ address: Endpoint, isDatagram: Bool) {
            switch (address.path, address.port) {
            case (let path?, _) where !path.isEmpty: self = .path(path)
            case (_, let port?): self = .port(port, isDatagram: isDatagram)
            default: return nil
            }
        }

        init?(_ socket: BoundSocket) {
            self.init(socket.localAddress, isDatagram: type(of: socket).isDatagram)
        }
    }

    // MARK: Binding

    /// Returns the reason why no socket can be bound to an address, even if it is free.
    func reason(against address: Endpoint) -> Int32? {
        if let path = address.path {
            guard !path.isEmpty, !path.hasPrefix("@") else { return nil }
            let reason = disk.reason(againstNewFileAt: Directories.absolute(path, from: "/"))
            return reason == EEXIST ? EADDRINUSE : reason
        }
        return address.isWildcard || owns(address) ? nil : EADDRNOTAVAIL
    }

    /// Returns `true` if an internet address is one of the machine's own.
    func owns(_ address: Endpoint) -> Bool { address.isLoopback || addresses.contains(address.hostText) }

    /// Binds a socket to the place of its local address.
    ///
    /// - Returns: `false` if the place is taken.
    func bind(_ socket: BoundSocket) -> Bool {
        guard let place = Place(socket) else { return false }
        let others = bound[place, default: []]
        if case .path(let path) = place {
            guard files[path] == nil else { return false }
            files[path] = SocketFile(device: 1, inode: nextFile)
            nextFile += 1
        } else if others.contains(where: { !$0.shares(with: socket) }) {
            return false
        }
        bound[place] = others + [socket]
        return true
    }

    func unbind(_ socket: BoundSocket) {
        guard let place = Place(socket) else { return }
        bound[place]?.removeAll { $0 === socket }
        // A name in the abstract namespace is no file.
        if case .path(let path) = place, path.hasPrefix("@") { files[path] = nil }
    }

    /// Removes a path. Its socket stays open, but is not found there any more.
    func removePath(_ path: String) {
        files[path] = nil
        bound[.path(path)] = nil
    }

    func choosePort(forDatagrams isDatagram: Bool) -> UInt16 {
        repeat {
            nextPort = nextPort == .max ? 49_152 : nextPort + 1
        } while bound[.port(nextPort, isDatagram: isDatagram)]?.isEmpty == false
        return nextPort
    }

    /// Forgets the sockets, because the machine has stopped. Paths stay, names in the abstract namespace do not.
    func crash() {
        bound.removeAll()
        files = files.filter { !$0.key.hasPrefix("@") }
    }

    // MARK: Finding

    /// Returns the table of the machine that has an address.
    func table(at address: Endpoint) -> SocketTable? { network.node(at: address, from: self) as? SocketTable }

    /// Returns the bound sockets that receive data sent to an address.
    func sockets<Socket: BoundSocket>(_ kind: Socket.Type, at address: Endpoint) -> [Socket] {
        let place = Place(address, isDatagram: kind.isDatagram)
        return place.flatMap { bound[$0] }?.compactMap { $0 as? Socket }.filter { $0.covers(address) } ?? []
    }

    /// Returns the reason why a connection to a path without a socket fails.
    func reason(againstConnectionTo path: String, isDatagram: Bool = false) -> Int32? {
        if let socket = bound[.path(path)]?.first, type(of: socket).isDatagram != isDatagram { return EPROTOTYPE }
        guard files[path] == nil, !path.hasPrefix("@") else { return nil }
        return disk.reason(againstUseOf: Directories.absolute(path, from: "/")) ?? ECONNREFUSED
    }
}
