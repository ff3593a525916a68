internal import RunLoopCore
internal import RunLoopUnix

/// A machine on the network: what stays when its process ends or crashes.
final class Machine {
    let name: String
    let addresses: [String]
    let network: Network
    let disk: SimulatedDisk
    /// Whether it is switched on.
    var isUp = true

    /// The sockets that listen, by where; several at one place if all of them want it so.
    private var listeners: [Place: [SimulatedSocket]] = [:]
    /// Where sockets of paths were bound: a path stays when its socket is closed.
    private(set) var files: [String: SocketFile] = [:]
    private var nextFile: UInt64 = 1
    private var nextPort: UInt16 = 49_152

    init(_ name: String, addresses: [String], on network: Network) {
        (self.name, self.addresses, self.network) = (name, addresses, network)
        disk = SimulatedDisk(network)
    }

    // MARK: Where sockets listen

    enum Place: Hashable {
        case port(UInt16)
        case path(String)

        init?(_ address: Endpoint) {
            if let path = address.path {
                guard !path.isEmpty else { return nil }
                self = .path(path)
            } else if let port = address.port {
                self = .port(port)
            } else {
                return nil
            }
        }
    }

    /// Whether one more socket may be bound.
    func mayBind(_ socket: SimulatedSocket, at place: Place) -> Bool {
        if case .path(let path) = place { return files[path] == nil }
        return bound(at: place).allSatisfy { other in
            !other.overlaps(socket) || (other.reusesPort && socket.reusesPort)
        }
    }

    func bind(_ socket: SimulatedSocket, at place: Place) {
        if case .path(let path) = place {
            files[path] = SocketFile(device: 1, inode: nextFile)
            nextFile += 1
        }
        listeners[place, default: []].append(socket)
    }

    func unbind(_ socket: SimulatedSocket, from place: Place) {
        listeners[place]?.removeAll { $0 === socket }
        // A name in the abstract namespace is no file.
        if case .path(let path) = place, path.hasPrefix("@") { files[path] = nil }
    }

    private func bound(at place: Place) -> [SimulatedSocket] { listeners[place] ?? [] }

    /// The socket that a connection to an address comes to. Among several, chance decides.
    func listener(at address: Endpoint) -> SimulatedSocket? {
        guard let place = Place(address) else { return nil }
        let listening = bound(at: place).filter { $0.isListening && $0.covers(address) }
        guard listening.count > 1 else { return listening.first }
        return listening[network.random(in: 0...(listening.count - 1))]
    }

    func choosePort() -> UInt16 {
        repeat {
            nextPort = nextPort == .max ? 49_152 : nextPort + 1
        } while !bound(at: .port(nextPort)).isEmpty
        return nextPort
    }

    func removeFile(at path: String) {
        files[path] = nil
    }

    /// Its process has ended: nothing of it listens any more.
    func forgetListeners() {
        listeners.removeAll()
        files = files.filter { !$0.key.hasPrefix("@") }
    }
}

extension Endpoint {
    /// The address without the port; empty for a path.
    var hostText: String {
        guard port != nil else { return "" }
        let text = description
        let host = text[..<text.lastIndex(of: ":")!]
        return host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : String(host)
    }

    /// Whether it stands for all addresses of a machine.
    var isWildcard: Bool { hostText == "0.0.0.0" || hostText == "::" }
}
