import ExampleTestSupport
import RunLoopExploration
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import Testing

/// An hour of a cluster with trouble every few seconds, sometimes several in a row.
struct Hour {
    let seed: UInt64

    func run(minutes: Int = 60, traced: Bool = false) -> (failure: String?, operations: Int, trace: [String]) {
        withSimulation(seed: seed, traced: traced) { simulation in
            var random = simulation.loop.randomNumbers
            let cluster = Cluster(
                simulation, members: seed % 2 == 0 ? 3 : 5, batch: [1, 2, 64].randomElement(using: &random)!)
            cluster.network.link.jitter = .milliseconds(Int.random(in: 0...20, using: &random))
            cluster.network.link.lossRate = [0, 0.01].randomElement(using: &random)!
            let end = simulation.now + .seconds(60 * minutes)
            cluster.addClients(until: end)
            var failure: String?
            do {
                while simulation.now < end { try liveOn(cluster, &random) }
                try cluster.end()
            } catch {
                failure = "\(error)"
            }
            return (failure, cluster.history.count, simulation.trace)
        }
    }

    /// Causes some trouble, followed by some time without.
    private func liveOn(_ cluster: Cluster, _ random: inout RunLoop.RandomNumbers) throws {
        for host in cluster.hosts {
            host.disk.slow(.sync, by: .milliseconds(Int.random(in: 0...100, using: &random)))
        }
        for _ in 0..<Int.random(in: 1...20, using: &random) {
            try cluster.advance(by: .milliseconds(Int.random(in: 0...500, using: &random)))
            let trouble = Trouble.allCases.randomElement(using: &random)!
            cluster.have(trouble, Int.random(in: 1..<32, using: &random))
        }
        cluster.mend()
        try cluster.advance(by: .seconds(Int.random(in: 1...10, using: &random)))
    }
}

@Suite("An hour of Raft")
struct HourTests {
    /// The number of seeds is in `HOURS`; with `MINUTES=60` each lives for the whole hour.
    @Test("clients see one register, and the members agree", arguments: 0..<amount(of: "HOURS", usually: 1))
    func hour(seed: Int) {
        let minutes = amount(of: "MINUTES", usually: 1)
        let hour = Hour(seed: UInt64(seed)).run(minutes: minutes)
        #expect(
            hour.failure == nil && hour.operations > 100 * minutes,
            "seed \(seed): \(hour.failure ?? "only \(hour.operations) operations")")
    }

    @Test("the same seed gives the same hour")
    func same() {
        let minutes = (0..<2).map { _ in Hour(seed: 9).run(minutes: 1, traced: true).trace }
        let difference = zip(minutes[0], minutes[1]).first { $0 != $1 }
        #expect(minutes[0] == minutes[1] && minutes[0].count > 1_000, "\(String(describing: difference))")
    }
}
