internal import Glibc
internal import RunLoopSimulation
internal import RunLoopUnix

/// A computer of the simulation: the state that outlives its processes and crashes.
final class Machine {
    let network: Network
    let disk: SimulatedDisk
    let clock: MachineClock
    /// Its bound sockets: its side of the network.
    let sockets: SocketTable

    /// The programs that its files run, by path.
    var programs: [String: SimulatedProcess.Program] = [:]
    /// The ways in which calls of its processes may fail in an explored simulation, and how many more may.
    var faults: CallFaults = []
    var faultsLeft = 0
    var mostProcesses = Int.max
    /// The running processes, and the ended ones that no parent has reaped; by number.
    var processes: [Process] = []
    private var lastProcess: Int32 = 1

    init(_ name: String, addresses: [String], _ clock: MachineClock, on network: Network) {
        (self.network, self.clock) = (network, clock)
        disk = SimulatedDisk(of: name, network.simulation, network.chance)
        sockets = SocketTable(name, addresses: addresses, on: network, disk)
    }

    var name: String { sockets.name }
    /// The name for C programs, which stays for ever.
    private(set) lazy var cName = SimulatedEnvironment.keep(Array(name.utf8CString))

    /// The path on the network to another machine.
    func path(to other: Machine) -> NetworkPath { NetworkPath(from: sockets, to: other.sockets) }

    func note(_ text: String) {
        network.simulation.note(text, of: name)
    }

    /// Finds the addresses of a name: in `/etc/hosts`, or else on the network.
    func find(_ name: String) -> Result<[Endpoint], HostResolver.Failure> {
        let known = disk.contents(of: "/etc/hosts").map { Self.addresses(of: name.lowercased(), in: $0) } ?? []
        return known.isEmpty ? network.find(name) : .success(known)
    }

    /// All addresses of a name or an alias in an `/etc/hosts`, in the order of its lines, as for the C library.
    private static func addresses(of name: String, in file: [UInt8]) -> [Endpoint] {
        file.split(separator: UInt8(ascii: "\n")).compactMap { line in
            let text = String(decoding: line.prefix { $0 != UInt8(ascii: "#") }, as: UTF8.self)
            let fields = text.split { " \t\r\u{B}\u{C}".unicodeScalars.contains($0.unicodeScalars.first!) }
            guard fields.dropFirst().contains(where: { $0.lowercased() == name }) else { return nil }
            return address(String(fields[0]))
        }
    }

    /// The address that a text gives in its usual form; `nil` for any other text.
    private static func address(_ text: String) -> Endpoint? {
        var room = in6_addr()
        guard [AF_INET, AF_INET6].contains(where: { inet_pton($0, text, &room) == 1 }) else { return nil }
        return try? Endpoint(text, port: 0)
    }

    func newProcessIdentifier() -> Int32 {
        lastProcess += 1
        return lastProcess
    }

    /// Loses the machine's power. On a thread of one of its processes this does not return.
    ///
    /// The disk loses bytes and names that were not synced, as chance decides, and all locks and file watchers. Bound
    /// sockets and abstract names go; the paths of sockets stay. The processes go with their descriptors, and nobody is
    /// notified: no peer, no parent. Their threads rest for ever, and so keep the objects that they hold. What is left:
    /// synced files, installed programs, the clock, and the counters of ports and processes.
    func crash() {
        sockets.isUp = false
        disk.crash()
        sockets.crash()
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
