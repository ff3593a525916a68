import RunLoopHosts
import RunLoopKit
import RunLoopSimulation

/// A cluster that runs for some seconds. The number of its members, the speed of their disks, and the trouble are open.
struct ExploredCluster {
    private let simulation: Simulation
    private let cluster: Cluster

    init(_ simulation: Simulation) {
        self.simulation = simulation
        cluster = Cluster(
            simulation, members: simulation.choice("members", of: [3, 5]),
            batch: simulation.choice("entries in a message", of: [1, 64]))
    }

    func run() throws {
        let disk = simulation.choice("how long a sync takes", of: [100, 30, 5])
        for host in cluster.hosts { host.disk.slow(.sync, by: .milliseconds(disk)) }
        cluster.addClients(until: simulation.now + .seconds(15))
        try cluster.advance(by: .seconds(1))
        for _ in 0..<80 {
            try cluster.advance(by: .milliseconds(simulation.choice("the pause", of: [100, 20, 300])))
            let trouble: Trouble? = simulation.choice("trouble", of: [nil] + Trouble.allCases)
            if let trouble { cluster.have(trouble, simulation.choice("the members", of: Array(1..<32))) }
        }
        try cluster.end()
    }
}
