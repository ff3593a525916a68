internal import Glibc
@_spi(Ports) public import RunLoopKit
@_spi(Ports) public import RunLoopSimulation
@_spi(Ports) public import RunLoopUnix

/// Hosts with addresses and names, and the links between them, in a simulation.
///
/// Programs on a host use listeners, connections, names and TLS of RunLoopUnix as on a real one: the same code, on
/// sockets of the simulation. Bytes take the time of their link and arrive in order, in pieces of sizes that are legal,
/// but chosen by the simulation's seed. Links can be slow, lossy or cut, and hosts can crash.
///
/// ```swift
/// withSimulation(seed: 7) { simulation in
///     let network = SimulatedNetwork(simulation)
///     let server = network.addHost("server") { loop in
///         let listener = try Listener(address: Endpoint("0.0.0.0", port: 80), on: loop) { … }
///     }
///     let client = network.addHost("client") { loop in
///         Connection.connect(host: "server", port: 80, on: loop) { … }
///     }
///     simulation.advance(by: .seconds(10))
///     network.cut(between: client, and: server)
///     simulation.advance(by: .seconds(3_600))
///     network.heal()
///     server.crash()
/// }
/// ```
///
/// Hosts that are added without addresses, and the ``test``, have addresses of `10.255.0.0/16` and `fdff::/16`. Hosts
/// that are added with addresses may use all others.
///
/// A simulation has one network. `Sendable`; use it from the simulation's threads.
public final class SimulatedNetwork: Sendable {
    let network: Network
    // Unsafe, but only the thread whose turn it is uses it.
    private nonisolated(unsafe) var machines: [Machine]
    private let testProcess: Process
    /// The system of the test's host.
    var system: any SystemCalls & SimulatedDescriptors { testProcess }

    private static let ofWorld = WorldLocal<SimulatedNetwork?> { _ in nil }

    /// The host of the test's own threads, named `test`, from which connections come that a test itself opens.
    public let test: SimulatedHost

    /// Creates a network with the host of the test's own threads.
    ///
    /// - Precondition: called once in a simulation, on the thread of `withSimulation`, before it opens a socket.
    public init(_ simulation: Simulation) {
        network = Network(simulation)
        let machine = Machine("test", addresses: network.freeAddresses(), simulation.clock, on: network)
        machines = [machine]
        testProcess = Process(getpid(), on: machine, mostDescriptors: .max)
        test = SimulatedHost(machine, test: testProcess)
        simulation.nameTest(test.name)
        let (loop, world) = (simulation.loop, simulation.loop.world)
        require(Self.ofWorld[world] == nil, "a simulation has one network; add your hosts to that")
        // The network lives as long as the simulation: connections may outlive the program that made the network.
        Self.ofWorld.set(self, in: world)
        simulation.add(system, for: loop)
        WorldSystem.set(system, for: loop)
        HostResolver.finder.set({ [unowned testProcess] in testProcess.machine.find($0) }, in: world)
    }

    deinit {
        network.letGo()
        for machine in machines { machine.letGo() }
    }

    // MARK: Hosts

    /// Adds a host and starts its program.
    ///
    /// The program takes the place of `main`. It is called on a thread of the host, with that thread's loop, the
    /// process's main loop. After it has returned, the loop runs until it is stopped or nothing is left in it, and then
    /// the process ends. An error that the program throws ends the process at once; see ``SimulatedHost/ending``. If
    /// the host may not fail, that is a fault of the simulation, which `withSimulation` throws and an exploration
    /// finds. A program must not call `exit`, which would end the test.
    ///
    /// - Parameters:
    ///   - name: the host's name, which other hosts can look up; unique in the network.
    ///   - addresses: the host's addresses, in digits; by default a free one of `10.255.0.0/16` and one of `fdff::/16`.
    ///     Addresses in other ranges, such as 10.0.0.1, are free whatever the order in which hosts are added.
    ///   - service: the supervision of the process by a service manager; `nil`, the default, for none.
    ///   - user: the user that the process runs as; root by default, as for a service without `User=`.
    ///   - environment: the variables of the process, besides the service manager's; none by default. In a test program
    ///     that links RunLoopTesting, `getenv` finds them as well, once executors are captured.
    ///   - mayFail: `true` if the program may throw an error, for example when it has to refuse its configuration;
    ///     `false` by default.
    ///   - program: the program; called again each time the host starts again.
    @discardableResult
    public func addHost(
        _ name: String, addresses: [String]? = nil, service: SimulatedHost.Service? = nil,
        user: ChildProcess.User? = nil, environment: [String: String] = [:], mayFail: Bool = false,
        program: @escaping @Sendable (RunLoop) throws -> Void
    ) -> SimulatedHost {
        addHost(name, addresses, service, user, environment, mayFail) { loop, _ in
            try program(loop)
            return nil
        }
    }

    /// Adds a host and starts its program, which runs its loop itself and returns the status to exit with, as a daemon
    /// does.
    ///
    /// ```swift
    /// network.addDaemon("store", service: SimulatedHost.Service(watchdogPeriod: .seconds(10))) { loop in
    ///     let daemon = Daemon(loop: loop, manager: try ServiceManager())
    ///     try daemon.handleSignals()
    ///     _ = Watchdog(daemon.manager, loop: loop)
    ///     return daemon.run()
    /// }
    /// ```
    ///
    /// The process ends when the program returns, whatever is left in its loop, as one whose `main` calls `exit`; see
    /// ``SimulatedHost/Ending/exited(_:)``. A status other than zero, of which only the lowest eight bits count, is a
    /// fault of the simulation if the host may not fail. Everything else is as for
    /// ``addHost(_:addresses:service:user:environment:mayFail:program:)``.
    @discardableResult
    public func addDaemon(
        _ name: String, addresses: [String]? = nil, service: SimulatedHost.Service? = nil,
        user: ChildProcess.User? = nil, environment: [String: String] = [:], mayFail: Bool = false,
        program: @escaping @Sendable (RunLoop) throws -> Int32
    ) -> SimulatedHost {
        addHost(name, addresses, service, user, environment, mayFail) { loop, _ in try program(loop) }
    }

    func addHost(
        _ name: String, _ addresses: [String]?, _ service: SimulatedHost.Service?, _ user: ChildProcess.User?,
        _ environment: [String: String], _ mayFail: Bool, _ program: @escaping SimulatedHost.Program
    ) -> SimulatedHost {
        require(machines.allSatisfy { $0.name != name }, "two hosts have the name \(name); give each one its own")
        require(
            environment.keys.allSatisfy { !$0.isEmpty && !$0.contains("=") },
            "the name of a variable is not empty and has no =; give the value behind the colon")
        let machine = Machine(
            name, addresses: addresses ?? network.freeAddresses(), network.simulation.makeClock(), on: network)
        machines.append(machine)
        let host = SimulatedHost(
            machine, service, user: user ?? .root, environment: environment, mayFail: mayFail, program)
        host.start()
        return host
    }

    /// Makes two connected descriptors on the test's host.
    func makeSocketPair() -> (Int32, Int32) { testProcess.makePair() }

    /// Returns a process of the test's host that runs as another user.
    func makeSystem(as user: ChildProcess.User) -> any SystemCalls {
        Process(on: testProcess.machine, user: user, mostDescriptors: .max)
    }

    // MARK: Links

    /// The link between hosts without one from ``setLink(_:from:to:)``.
    public var link: NetworkLink {
        get { network.usualLink }
        set {
            newValue.check()
            network.usualLink = newValue
        }
    }

    /// Links two hosts, in both directions.
    public func setLink(_ link: NetworkLink, between one: SimulatedHost, and other: SimulatedHost) {
        setLink(link, from: one, to: other)
        setLink(link, from: other, to: one)
    }

    /// Links two hosts, in one direction. Bytes already under way arrive as they would have.
    public func setLink(_ link: NetworkLink, from one: SimulatedHost, to other: SimulatedHost) {
        link.check()
        network.links[one.machine.path(to: other.machine)] = link
    }

    // MARK: Faults

    /// Cuts the link of two hosts, in one direction: nothing arrives there. Connections stay, and continue when the
    /// link is healed. After more than a quarter of an hour, connections with unsent bytes fail with `ETIMEDOUT`.
    public func cut(from one: SimulatedHost, to other: SimulatedHost) {
        cut(from: one.machine, to: other.machine)
    }

    private func cut(from one: Machine, to other: Machine) {
        network.cuts.insert(one.path(to: other))
        network.simulation.meet(.linkCut)
        one.note("cut to \(other.name)")
    }

    /// Cuts the link of two hosts, in both directions.
    public func cut(between one: SimulatedHost, and other: SimulatedHost) {
        cut(from: one, to: other)
        cut(from: other, to: one)
    }

    /// Cuts all links between the hosts of `group` and all others, in both directions.
    public func partition(_ group: [SimulatedHost]) {
        for other in machines where !group.contains(where: { $0.machine === other }) {
            for host in group {
                cut(from: host.machine, to: other)
                cut(from: other, to: host.machine)
            }
        }
    }

    /// Heals all links that were cut.
    public func heal() {
        guard !network.cuts.isEmpty else { return }
        network.cuts.removeAll()
        network.simulation.note("healed", of: "network")
    }

    /// Heals the link of two hosts, in both directions.
    public func heal(between one: SimulatedHost, and other: SimulatedHost) {
        let path = one.machine.path(to: other.machine)
        network.cuts.remove(path)
        network.cuts.remove(path.back)
        one.machine.note("healed to \(other.name)")
    }

    /// Resets the connections between two hosts, at both ends, as a middlebox that has lost its table does: each end
    /// fails with `ECONNRESET`.
    public func reset(between one: SimulatedHost, and other: SimulatedHost) {
        let ends = one.ends(ofConnectionsTo: other.machine) + other.ends(ofConnectionsTo: one.machine)
        // An end that is on its way to a listener is in no table yet.
        for end in ends + ends.compactMap(\.farEnd) { end.reset(ECONNRESET) }
    }

    // MARK: Names

    /// Sets the answer for a name from now on. Without an answer, a host's name leads to its addresses, and other names
    /// are not found. A host that has the name in the `/etc/hosts` of its disk does not ask the network.
    public func setAnswer(_ answer: NetworkAnswer, for name: String) {
        network.names[name] = answer
    }
}
