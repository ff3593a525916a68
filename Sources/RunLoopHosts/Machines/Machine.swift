internal import Glibc
internal import RunLoopCore
internal import RunLoopSimulation
internal import RunLoopUnix

/// A machine on the network: the state that outlives its processes and crashes.
final class Machine {
    let name: String
    let addresses: [String]
    private let surroundings: Surroundings
    let disk: SimulatedDisk
    let clock: MachineClock
    /// Whether it is switched on.
    var isUp = true

    /// The listening sockets, by place; several at one place if all of them allow it.
    private var listeners: [Place: [any BoundSocket]] = [:]
    /// The paths at which sockets were bound: a path stays when its socket is closed.
    private(set) var files: [String: SocketFile] = [:]
    private var nextFile: UInt64 = 1
    private var nextPort: UInt16 = 49_152

    init(_ name: String, addresses: [String], _ clock: MachineClock, _ surroundings: Surroundings) {
        self.clock = clock
        (self.name, self.addresses, self.surroundings) = (name, addresses, surroundings)
        disk = SimulatedDisk(of: name, surroundings)
    }

    // MARK: Places of sockets

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

    /// Whether a socket may be bound to a place.
    func mayBind(_ socket: any BoundSocket, at place: Place) -> Bool {
        if case .path(let path) = place { return files[path] == nil }
        return bound(at: place).allSatisfy { other in
            !other.overlaps(socket) || (other.reusesPort && socket.reusesPort)
        }
    }

    func bind(_ socket: any BoundSocket, at place: Place) {
        if case .path(let path) = place {
            files[path] = SocketFile(device: 1, inode: nextFile)
            nextFile += 1
        }
        listeners[place, default: []].append(socket)
    }

    func unbind(_ socket: any BoundSocket, from place: Place) {
        listeners[place]?.removeAll { $0 === socket }
        // A name in the abstract namespace is no file.
        if case .path(let path) = place, path.hasPrefix("@") { files[path] = nil }
    }

    private func bound(at place: Place) -> [any BoundSocket] { listeners[place] ?? [] }

    /// The socket that receives a connection to an address. Among several, chance decides.
    func listener(at address: Endpoint) -> (any BoundSocket)? {
        guard let place = Place(address) else { return nil }
        let listening = bound(at: place).filter { $0.isListening && $0.covers(address) }
        guard listening.count > 1 else { return listening.first }
        let range = 0...(listening.count - 1)
        let number = surroundings.outcome(
            surroundings.random(in: range), on: name, "chooses a listener", usual: 0, in: range)
        return listening[number]
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

    // MARK: Processes

    /// The programs that its files run, by path.
    var programs: [String: SimulatedProcess.Program] = [:]
    /// The largest number of processes.
    var mostProcesses = Int.max
    /// The running processes, and the ended ones that no parent has reaped; by number.
    private(set) var processes: [any MachineProcess] = []
    private var lastProcess: Int32 = 1

    func newProcessIdentifier() -> Int32 {
        lastProcess += 1
        return lastProcess
    }

    func add(_ process: any MachineProcess) {
        processes.append(process)
    }

    func remove(_ process: any MachineProcess) {
        processes.removeAll { $0 === process }
    }

    /// The path of a file from the root.
    func absolute(_ path: String, from directory: String) -> String {
        path.hasPrefix("/") ? path : directory.hasSuffix("/") ? directory + path : "\(directory)/\(path)"
    }

    /// Ends the remaining processes of a service.
    func killAll() {
        for process in processes { process.end(by: .kill) }
    }

    /// Stops the machine: its processes end where they are. On a thread of one of them this does not return.
    func stop() {
        disk.crash()
        // A path outlives a crash, a name in the abstract namespace does not.
        listeners.removeAll()
        files = files.filter { !$0.key.hasPrefix("@") }
        let processes = processes
        self.processes.removeAll()
        // The calling thread's process comes last.
        for process in processes where !process.isCurrent { process.vanish() }
        for process in processes where process.isCurrent { process.vanish() }
    }

    /// Releases everything at the end of the simulation.
    func letGo() {
        processes.removeAll()
        programs.removeAll()
    }
}

/// A socket that is bound to a place of its machine.
protocol BoundSocket: AnyObject {
    var isListening: Bool { get }
    var reusesPort: Bool { get }
    var family: Int32 { get }
    var localAddress: Endpoint { get }
    /// Whether it accepts connections of IPv6 alone.
    var isSixOnly: Bool { get }
}

extension BoundSocket {
    /// Whether both sockets would get the same connections.
    func overlaps(_ other: any BoundSocket) -> Bool {
        if family != other.family {
            let six: any BoundSocket = family == AF_INET6 ? self : other
            return !six.isSixOnly && six.localAddress.isWildcard
        }
        return localAddress.isWildcard || other.localAddress.isWildcard
            || localAddress.hostText == other.localAddress.hostText
    }

    /// Whether it receives connections to an address.
    func covers(_ address: Endpoint) -> Bool {
        if family != address.family { return family == AF_INET6 && !isSixOnly && localAddress.isWildcard }
        return family == AF_UNIX || localAddress.isWildcard || localAddress.hostText == address.hostText
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

    /// The machine's own address of its family, to which a connection to the wildcard goes, as on Linux.
    var loopback: Endpoint { try! Endpoint(family == AF_INET6 ? "::1" : "127.0.0.1", port: port ?? 0) }
}

extension Machine {
    /// An address of a family, or of the other family if there is none.
    func address(of family: Int32) -> String? {
        addresses.first { $0.contains(":") == (family == AF_INET6) } ?? addresses.first
    }
}
