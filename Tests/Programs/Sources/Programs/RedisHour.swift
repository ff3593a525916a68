import RunLoopHosts
import RunLoopSimulation

/// An hour of redis-server and of clients with redis-cli, with cuts of the links and power failures: no answer is lost.
enum RedisHour {
    private static let arguments = [
        "--save", "", "--appendonly", "yes", "--appendfsync", "always", "--dir", "/data", "--protected-mode", "no",
    ]

    static func run(seed: UInt64) {
        withSimulation(seed: seed, traced: true) { simulation in
            let network = SimulatedNetwork(simulation)
            network.link.latency = .milliseconds(1)
            network.link.jitter = .milliseconds(1)
            let server = network.addProgram(
                "server", at: "/usr/bin/redis-server", arguments: arguments, mayFail: true)
            // redis-server makes this directory, but syncs no name of it: a crash may lose it with everything in it.
            server.disk.installDirectory(at: "/data/appendonlydir")
            simulation.advance(by: .seconds(1))
            for part in 0..<6 {
                let client = network.addProgram(
                    "client \(part)", at: "/usr/bin/redis-cli",
                    arguments: ["-h", "server", "-r", "20", "-i", "10", "incr", "count"])
                simulation.advance(by: .seconds(55))
                network.cut(between: client, and: server)
                simulation.advance(by: .seconds(30))
                network.heal()
                simulation.advance(by: .seconds(400))
                let answers = Programs.lines(of: "client \(part)", simulation).map { String($0.text) }
                if answers != (1...20).map({ "\(20 * part + $0)" }) { Programs.fail("client \(part): \(answers)") }
                server.crash()
                simulation.advance(by: .seconds(5))
                server.start()
                simulation.advance(by: .seconds(110))
            }
            for line in simulation.trace { print(line) }
            if !server.isRunning { Programs.fail("redis-server has ended") }
            for escape in simulation.escapes { Programs.fail(escape) }
        }
    }
}
