import ArgumentParser
import Logging
import RunLoopExploration
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopUnix

@testable import Raft

/// Members of a cluster on simulated hosts, clients that change and read a few keys, and trouble.
///
/// Unchecked: in a simulation only the thread whose turn it is gets here.
final class Cluster: @unchecked Sendable {
    static let port: UInt16 = 7000

    let simulation: Simulation
    let network: SimulatedNetwork
    private(set) var hosts: [SimulatedHost] = []
    private(set) var check = ClusterCheck()
    let history: History<RegisterModel>
    /// The keys that clients have used, in order.
    private var keys: [String] = []

    /// A broken promise.
    struct Broken: Error, CustomStringConvertible {
        let description: String
    }

    /// - Parameter batch: the largest number of entries in a message. With few entries, followers have to ask more
    ///   often.
    init(_ simulation: Simulation, members count: Int, batch: Int) {
        self.simulation = simulation
        network = SimulatedNetwork(simulation)
        history = History(of: RegisterModel(), in: simulation)
        let names = Array(["a", "b", "c", "d", "e"].prefix(count))
        let members = names.flatMap { ["--member", "\($0)=\(Self.address(of: $0)):\(Self.port)"] }
        for name in names {
            let arguments = ["--name", name, "--journal", "/data/journal", "--bind", "0.0.0.0", "--batch", "\(batch)"]
            let host = network.addHost(name, addresses: [Self.address(of: name)]) { [self] _ in
                let log = Logger(label: "raft", factory: { _ in SwiftLogNoOpLogHandler() })
                let daemon = try RaftDaemon(try Raft.parse(arguments + members), log)
                watch(daemon.node)
                let status = try daemon.run()
                if status != 0 { throw ExitCode(status) }
            }
            hosts.append(host)
        }
    }

    /// Returns the address of a member, in digits: names would have to be looked up, which takes a thread of its own.
    static func address(of member: String) -> String { "10.1.0.\(UnicodeScalar(member)!.value)" }

    private func watch(_ node: Node) {
        let name = node.member.name
        check.memberBegins(name, node.member.stored)
        node.effectsHandler = { [unowned self, unowned node] in check.memberSteps(node.member, $0) }
        node.messageHandler = { [unowned self] in check.memberSends(name, $0, to: $1) }
    }

    /// Adds two clients that read and write, and one that only reads: a writer soon notices a leader that was cut off.
    func addClients(until end: RunLoop.Instant) {
        addClient("one", until: end, onlyReads: false)
        addClient("two", until: end, onlyReads: false)
        addClient("reader", until: end, onlyReads: true)
    }

    private func addClient(_ name: String, until end: RunLoop.Instant, onlyReads: Bool) {
        let client = ClusterClient(name, of: hosts.map(\.name), on: simulation.loop, history)
        simulation.loop.task(name: name) { [self] in
            try await client.work(until: end, onlyReads: onlyReads) { number in
                // New keys every few seconds, so that the history of each is short.
                let key = "k\(simulation.now.nanoseconds / 2_000_000_000).\(number % 3)"
                if !keys.contains(key) { keys.append(key) }
                return key
            }
        }
    }

    /// - Throws: ``Broken`` if a promise is broken.
    func advance(by duration: Duration) throws {
        simulation.advance(by: duration)
        for host in hosts {
            if case .failed(let error)? = host.ending { check.fail("a member has failed: \(error)") }
        }
        if let failure = check.failures.first { throw Broken(description: failure) }
    }

    /// Ends all trouble, reads the latest keys, and checks the observations of members and clients.
    func end() throws {
        mend()
        try advance(by: .seconds(3))
        var hasRead = false
        simulation.loop.task(name: "audit") { [self] in
            let client = ClusterClient("audit", of: hosts.map(\.name), on: simulation.loop, history)
            for key in keys.suffix(10) {
                while true {
                    do {
                        _ = try await client.perform(.get(key))
                        break
                    } catch { try await simulation.loop.clock.sleep(for: .milliseconds(100)) }
                }
            }
            client.leave()
            hasRead = true
        }
        for _ in 0..<20 where !hasRead { try advance(by: .seconds(1)) }
        if !hasRead { throw Broken(description: "nobody answers") }
        try history.check()
    }
}
