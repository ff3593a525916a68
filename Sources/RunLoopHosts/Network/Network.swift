@_spi(Ports) internal import RunLoopCore
@_spi(Ports) internal import RunLoopSimulation
@_spi(Ports) internal import RunLoopUnix

/// The network that carries bytes between the machines of a simulation: its nodes, and the links between them.
///
/// Unchecked and not locked: used only by the thread whose turn it is.
final class Network: @unchecked Sendable {
    let simulation: Simulation
    let chance: Chance
    private(set) var nodes: [NetworkNode] = []
    private var byAddress: [String: NetworkNode] = [:]
    /// The number of nodes added without addresses.
    private var usualAddresses = 0

    /// The link between nodes without one of their own.
    var usualLink = NetworkLink()
    var links: [NetworkPath: NetworkLink] = [:]
    /// The time when the last byte on a path with a bandwidth has left; later bytes leave after it.
    private var ends: [NetworkPath: RunLoop.Instant] = [:]
    var cuts: Set<NetworkPath> = []
    /// The answers for names other than nodes' own.
    var names: [String: NetworkAnswer] = [:]

    init(_ simulation: Simulation) {
        (self.simulation, chance) = (simulation, Chance(simulation))
    }

    /// `true` once the simulation has ended.
    var isOver: Bool { nodes.isEmpty }

    /// Releases everything at the end of the simulation.
    func letGo() {
        nodes.removeAll()
        byAddress.removeAll()
        links.removeAll()
        ends.removeAll()
        cuts.removeAll()
    }

    // MARK: Nodes and links

    func add(_ node: NetworkNode) {
        nodes.append(node)
        for address in node.addresses {
            let other = byAddress[address]?.name ?? ""
            require(
                other.isEmpty,
                "the hosts \(quoted(other)) and \(quoted(node.name)) have the same address, \(address); give each one its "
                    + "own. Hosts that are added without any have those of 10.255.0.0/16 and fdff::/16")
            byAddress[address] = node
        }
    }

    /// Returns an address of each family that no node has, from the ranges for hosts added without addresses.
    func freeAddresses() -> [String] {
        while true {
            usualAddresses += 1
            require(usualAddresses < 1 << 16, "a network has at most 65,535 hosts without addresses")
            let (high, low) = (usualAddresses >> 8, usualAddresses & 0xff)
            let addresses = ["10.255.\(high).\(low)", "fdff::\(String(usualAddresses, radix: 16))"]
            if addresses.allSatisfy({ byAddress[$0] == nil }) { return addresses }
        }
    }

    /// Returns the node with an address, as a socket of another node sees it.
    func node(at address: Endpoint, from node: NetworkNode) -> NetworkNode? {
        address.isLoopback ? node : byAddress[address.hostText]
    }

    func link(_ path: NetworkPath) -> NetworkLink {
        links[path] ?? (path.isLoopback ? .loopback : usualLink)
    }

    /// Returns `true` if bytes on the path would arrive now.
    func isOpen(_ path: NetworkPath) -> Bool {
        path.isLoopback || (!cuts.contains(path) && path.to.isUp)
    }

    /// The largest number of losses in a row: after 102 s a packet gets through.
    private static let mostLosses = 9

    /// The pause before a lost packet is sent again, if no others report the loss.
    static let retransmission = Duration.milliseconds(200)

    /// Returns the round trip of a path, without jitter and losses.
    func roundTrip(_ path: NetworkPath) -> Duration { link(path).latency + link(path.back).latency }

    /// The loss of a packet of a connection.
    enum Loss {
        case none
        /// Other packets have reported the loss, and the sender has sent the packet again after a round trip.
        case recovered
        /// The sender has heard nothing for a while, once or several times.
        case timedOut
    }

    /// Returns the time that a piece of a connection takes.
    ///
    /// - Parameters:
    ///   - packets: the number of packets in the piece.
    ///   - flight: the number of packets under way, including these.
    ///   - retransmission: the pause before a packet that was lost is sent again.
    func delay(
        of count: Int, inPackets packets: Int = 1, amid flight: Int = 1, on path: NetworkPath,
        retransmission: Duration = retransmission
    ) -> (time: Duration, loss: Loss) {
        let (link, delay) = (link(path), travelTime(of: count, on: path))
        guard link.lossRate > 0 else { return (delay, .none) }
        // Later bytes wait until the packet gets through: for the pause, then twice as long, each time.
        var losses = 0
        for _ in 0..<packets where chance.happens(at: link.lossRate) { losses = 1 }
        while losses > 0, losses < Self.mostLosses, chance.happens(at: link.lossRate) { losses += 1 }
        let fewest = link.lossRate < 1 ? 0 : Self.mostLosses
        losses = chance.outcome(
            losses, on: path.from.name, "loses on the way to \(path.to.name)", usual: fewest,
            in: fewest...Self.mostLosses)
        guard losses > 0 else { return (delay, .none) }
        simulation.meet(.packetSentAgain)
        if losses == 1, flight > Self.packetsThatTell { return (delay + roundTrip(path), .recovered) }
        return (delay + retransmission * ((1 << losses) - 1), .timedOut)
    }

    /// The number of packets that report a lost one.
    private static let packetsThatTell = 3

    /// Returns the time that `count` bytes take if nothing is lost.
    func travelTime(of count: Int, on path: NetworkPath) -> Duration {
        let link = link(path)
        var delay = link.latency
        if link.jitter > .zero {
            let jitter = chance.outcome(
                on: path.from.name, "is delayed on the way to \(path.to.name)", usual: 0,
                in: 0...Int(clamping: link.jitter.nanoseconds))
            delay += .nanoseconds(jitter)
        }
        if let bandwidth = link.bandwidth, count > 0 {
            let end = max(simulation.now, ends[path] ?? .distantPast) + .seconds(1) / bandwidth * count
            ends[path] = end
            delay += end - simulation.now
        }
        return delay
    }

    /// Performs an action after the time that a message takes along a path.
    ///
    /// - Parameter retransmission: the pause before the message is sent again if it was lost.
    func after(_ path: NetworkPath, retransmission: Duration = retransmission, _ action: @escaping () -> Void) {
        let delay = delay(of: 0, on: path, retransmission: retransmission).time
        _ = simulation.schedule(
            at: simulation.now + delay, "a packet arrives", from: path.from.name, on: path.to.name, action)
    }

    // MARK: Names

    /// Names that each node resolves to itself, as in its `/etc/hosts`.
    private static let ownNames = ["localhost": ["127.0.0.1", "::1"], "localhost.localdomain": ["127.0.0.1"]]

    /// Finds the addresses of a name, on a thread that may be blocked.
    func find(_ name: String) -> Result<[Endpoint], HostResolver.LookupError> {
        let addresses = Self.ownNames[name.lowercased()] ?? nodes.first { $0.name == name }?.addresses
        return resolve(name, names[name] ?? addresses.map { .addresses($0) })
    }

    private func resolve(_ name: String, _ answer: NetworkAnswer?) -> Result<[Endpoint], HostResolver.LookupError> {
        switch answer {
        case .addresses(let addresses)?: return .success(addresses.map { try! Endpoint($0, port: 0) })
        case .failure(let kind, let reason)?: return .failure(.init(kind, name: name, reason: reason))
        case nil: return .failure(.init(.notFound, name: name, reason: "Name or service not known"))
        case .delayed(let delay, let next)?:
            simulation.spend(delay)
            return resolve(name, next)
        }
    }
}
