internal import Glibc
@_spi(Ports) internal import RunLoopSimulation
internal import RunLoopUnix

/// A computer of the simulation: the state that outlives its processes and crashes.
final class Machine {
    let network: Network
    let disk: SimulatedDisk
    let clock: MachineClock
    /// The machine's bound sockets: its side of the network.
    let sockets: SocketTable

    /// The programs that the machine's files run, by path.
    var programs: [String: SimulatedProcess.Program] = [:]
    /// The ways in which calls of the machine's processes may fail in an explored simulation; `faultsLeft` is how many
    /// more may.
    var faults: CallFaults = []
    var faultsLeft = 0
    var mostProcesses = Int.max
    /// The running processes, and the ended ones that no parent has reaped; by number.
    var processes: [Process] = []
    private var lastProcess: Int32 = 1
    private var lastNumber = 0

    init(_ name: String, addresses: [String], _ clock: MachineClock, on network: Network) {
        (self.network, self.clock) = (network, clock)
        disk = SimulatedDisk(of: name, clock, network.simulation, network.chance)
        sockets = SocketTable(name, addresses: addresses, on: network, disk)
    }

    var name: String { sockets.name }
    /// The name for C programs, which stays valid forever.
    private(set) lazy var cName = SimulatedEnvironment.keep(Array(name.utf8CString))

    /// Returns the path on the network to another machine.
    func path(to other: Machine) -> NetworkPath { NetworkPath(from: sockets, to: other.sockets) }

    func note(_ text: String) {
        network.simulation.note(text, of: name)
    }

    /// Finds the addresses of a name, in `/etc/hosts` or else on the network.
    func find(_ name: String) -> Result<[Endpoint], HostResolver.LookupError> {
        let known = disk.contents(of: "/etc/hosts").map { Self.addresses(of: name.lowercased(), in: $0) } ?? []
        return known.isEmpty ? network.find(name) : .success(known)
    }

    /// Returns all addresses of a name or an alias in an `/etc/hosts`, in the order of its lines, as the C library
    /// does.
    private static func addresses(of name: String, in file: [UInt8]) -> [Endpoint] {
        file.split(separator: UInt8(ascii: "\n")).compactMap { line in
            let text = String(decoding: line.prefix { $0 != UInt8(ascii: "#") }, as: UTF8.self)
            let fields = text.split { " \t\r\u{B}\u{C}".unicodeScalars.contains($0.unicodeScalars.first!) }
            guard fields.dropFirst().contains(where: { $0.lowercased() == name }) else { return nil }
            return address(String(fields[0]))
        }
    }

    /// Returns the address that a text gives in its usual form; `nil` for any other text.
    private static func address(_ text: String) -> Endpoint? {
        var room = in6_addr()
        guard [AF_INET, AF_INET6].contains(where: { inet_pton($0, text, &room) == 1 }) else { return nil }
        return try? Endpoint(text, port: 0)
    }

    /// Returns the number of a file or directory for programs of the system: in the order in which they ask.
    func number(of node: DiskNode) -> Int {
        if node.number == 0 {
            lastNumber += 1
            node.number = lastNumber
        }
        return node.number
    }

    func newProcessIdentifier() -> Int32 {
        lastProcess += 1
        return lastProcess
    }

    /// Loses the machine's power. Does not return on a thread of one of the machine's processes.
    ///
    /// The disk loses bytes and names that were not synced, as chance decides, and all locks and file watchers. Bound
    /// sockets and abstract names go; the paths of sockets stay. The processes go with their descriptors, without
    /// notice to peers or parents. Their threads rest forever, and so keep the objects that they hold. The synced
    /// files, the installed programs, the clock, and the counters of ports and processes stay.
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
