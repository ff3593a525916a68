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
    private let test: RunLoop.Remote
    /// Trouble for the next leader, and how long it is spared.
    private var planned: (trouble: Trouble, delay: Duration)?
    let history: History<RegisterModel>
    /// The keys that clients have used, in order.
    private var keys: [String] = []

    /// A broken promise.
    struct Broken: Error, CustomStringConvertible {
        let description: String
    }

    /// - Parameter batch: the most entries in a message. With a few, followers have to ask more often.
    init(_ simulation: Simulation, members count: Int, batch: Int) {
        self.simulation = simulation
        network = SimulatedNetwork(simulation)
        test = simulation.loop.remote
        history = History(of: RegisterModel(), in: simulation)
        let names = Array(["a", "b", "c", "d", "e"].prefix(count))
        let members = names.flatMap { ["--member", "\($0)=\(Self.address(of: $0)):\(Self.port)"] }
        for name in names {
            let arguments = ["--name", name, "--journal", "/data/journal", "--bind", "0.0.0.0", "--batch", "\(batch)"]
            let host = network.addHost(name, addresses: [Self.address(of: name)]) { [self] loop in
                let log = Logger(label: "raft", factory: { _ in SwiftLogNoOpLogHandler() })
                let daemon = try RaftDaemon(try Raft.parse(arguments + members), log)
                watch(daemon.node, on: loop)
                let status = try daemon.run()
                if status != 0 { throw ExitCode(status) }
            }
            hosts.append(host)
        }
    }

    /// In digits: names would have to be looked up, which takes a thread of its own.
    static func address(of member: String) -> String { "10.1.0.\(UnicodeScalar(member)!.value)" }

    private func watch(_ node: Node, on loop: RunLoop) {
        check.memberBegins(node.member.name)
        let observer = Observer(activities: .beforeWaiting) { [self] _, _ in
            let former = check.leader
            check.look(at: node.member)
            if node.member.isLeader, check.leader != former { haveAnotherLeader() }
        }
        loop.add(observer, forMode: .common)
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
                // New keys every few seconds: the history of one is short.
                let key = "k\(simulation.now.nanoseconds / 2_000_000_000).\(number % 3)"
                if !keys.contains(key) { keys.append(key) }
                return key
            }
        }
    }

    func advance(by duration: Duration) {
        simulation.advance(by: duration)
        check.compareLogs()
        for host in hosts {
            if case .failed(let error)? = host.ending { check.fail("\(host.name) has failed: \(error)") }
        }
    }

    /// Ends all trouble, reads the latest keys, and checks the observations of members and clients.
    func end() throws {
        mend()
        advance(by: .seconds(3))
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
        for _ in 0..<20 where !hasRead { advance(by: .seconds(1)) }
        if !hasRead { check.fail("nobody answers") }
        if let failure = check.failures.first { throw Broken(description: failure) }
        try history.check()
    }

    // MARK: Trouble

    enum Trouble: CaseIterable {
        case leaderCrashes, leaderIsCutOff, nextLeaderCrashes, nextLeaderIsCutOff
        case memberCrashes, memberIsStartedAnew, linkIsCut, linksAreMended, membersStart
    }

    /// - Parameter some: the number of a member, or how long the next leader is spared.
    func have(_ trouble: Trouble, _ some: Int) {
        let host = hosts[some % hosts.count]
        let leader = hosts.first { $0.name == check.leader } ?? host
        switch trouble {
        case .leaderCrashes: leader.crash()
        case .nextLeaderCrashes: planned = (.leaderCrashes, .milliseconds(some * 50))
        case .nextLeaderIsCutOff: planned = (.leaderIsCutOff, .milliseconds(some * 50))
        // From the others, and not from the clients.
        case .leaderIsCutOff: for other in hosts where other !== leader { network.cut(between: leader, and: other) }
        case .memberCrashes: host.crash()
        case .memberIsStartedAnew:
            host.crash()
            host.start()
        case .linkIsCut: network.cut(between: host, and: hosts[(some + 1) % hosts.count])
        case .linksAreMended: network.heal()
        case .membersStart: start()
        }
    }

    private func start() {
        for host in hosts { host.start() }
    }

    func mend() {
        planned = nil
        start()
        network.heal()
    }

    /// Has the planned trouble soon, when a member has just become the leader.
    private func haveAnotherLeader() {
        guard let (trouble, delay) = planned else { return }
        planned = nil
        test.perform { [self] loop in loop.perform(afterDelay: delay) { [self] in have(trouble, 0) } }
    }
}
