internal import RunLoopCore
internal import RunLoopSimulation
internal import RunLoopUnix

/// What carries bytes between the machines of a simulation.
///
/// It is not locked: only the thread whose turn it is gets here.
final class Network {
    let simulation: Simulation
    private var numbers: RunLoop.RandomNumbers
    private(set) var machines: [Machine] = []
    private var byAddress: [String: Machine] = [:]

    /// How machines are linked, unless it is said of the two of them.
    var usualLink = SimulatedNetwork.Link()
    var links: [NetworkPath: SimulatedNetwork.Link] = [:]
    /// The ways that nothing gets through.
    var cuts: Set<NetworkPath> = []
    /// What names lead to, besides those of machines.
    var names: [String: SimulatedNetwork.Answer] = [:]

    init(_ simulation: Simulation) {
        self.simulation = simulation
        numbers = simulation.randomNumbers(for: "network")
    }

    var now: RunLoop.Instant { simulation.now }

    /// The simulation has ended. Machines keep the network; this ends the circle.
    func letGo() {
        machines.removeAll()
        byAddress.removeAll()
        links.removeAll()
        cuts.removeAll()
    }

    // MARK: Chance

    /// True once in so many times.
    func chance(of times: Int) -> Bool { random(in: 0...(times - 1)) == 0 }

    func random(in range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &numbers) }

    // MARK: Machines and links

    func add(_ machine: Machine, addresses: [String]) {
        machines.append(machine)
        for address in addresses {
            require(byAddress[address] == nil, "two hosts have the address \(address); give each one its own")
            byAddress[address] = machine
        }
    }

    /// Whose address it is, for a socket of a machine.
    func machine(at address: Endpoint, from machine: Machine) -> Machine? {
        let host = address.hostText
        return host == "127.0.0.1" || host == "::1" || host.hasPrefix("127.") ? machine : byAddress[host]
    }

    func find(_ name: String) -> SimulatedNetwork.Answer {
        if let answer = names[name] { return answer }
        guard let machine = machines.first(where: { $0.name == name }) else {
            return .failure(.notFound, reason: "Name or service not known")
        }
        return .addresses(machine.addresses)
    }

    private func link(_ path: NetworkPath) -> SimulatedNetwork.Link {
        links[path] ?? (path.isLoopback ? .loopback : usualLink)
    }

    /// Whether something that arrives now gets there.
    func isOpen(_ path: NetworkPath) -> Bool {
        path.isLoopback || (!cuts.contains(path) && path.to.isUp)
    }

    /// How long so many bytes take.
    func delay(of count: Int, on path: NetworkPath) -> Duration {
        let link = link(path)
        var delay = link.latency
        if link.jitter > .zero {
            delay += .nanoseconds(random(in: 0...Int(clamping: link.jitter.saturatedNanoseconds)))
        }
        if let bandwidth = link.bandwidth { delay += .seconds(1) / bandwidth * count }
        // What is lost is sent again, and what comes behind it waits.
        var pause = Duration.milliseconds(200)
        while link.lossRate > 0, Double.random(in: 0..<1, using: &numbers) < link.lossRate, pause < .seconds(60) {
            delay += pause
            pause = pause * 2
        }
        return delay
    }

    // MARK: Time

    @discardableResult
    func schedule(at date: RunLoop.Instant, _ action: @escaping () -> Void) -> Appointment {
        simulation.schedule(at: date, action)
    }

    /// Has something happen when a word has gone along a way.
    func after(_ path: NetworkPath, _ action: @escaping () -> Void) {
        schedule(at: now + delay(of: 0, on: path), action)
    }

    func note(_ machine: Machine, _ text: @autoclosure () -> String) {
        simulation.note(text(), of: machine.name)
    }
}
