import Logging
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopTesting
import RunLoopUnix
import WebServer

/// A day of the daemon, its clients and the members of its chat: links that are slow, lossy and cut, a host that
/// crashes, and a disk that is slow or full.
///
/// Unchecked: in a simulation only the thread whose turn it is gets here.
final class Day: @unchecked Sendable {
    private(set) var failures: [String] = []
    /// The uploads that the daemon has acknowledged.
    private(set) var stored: [String: [UInt8]] = [:]
    private(set) var isDiskFull = false
    private(set) var answers = 0
    private(set) var messages = 0
    /// The message that followed each message.
    private var successors: [String: String] = [:]
    private var now: () -> RunLoop.Instant = { .distantPast }

    func fail(_ text: String) {
        failures.append("\(now()): \(text)")
    }

    func hasAnswered() {
        answers += 1
    }

    func acknowledge(_ name: String, _ content: [UInt8]) {
        stored[name] = content
    }

    /// Checks that all members receive all messages in one order, as long as they are connected.
    func receive(_ text: String, after last: String?, by member: String) {
        messages += 1
        guard let last else { return }
        if let successor = successors[last], successor != text {
            fail("\(member) received \(text) after \(last), and others received \(successor)")
        }
        successors[last] = text
    }

    func run(seed: UInt64, hours: Int = 24, clients: Int = 1_000, members: Int = 8, traced: Bool = false) -> [String] {
        withSimulation(seed: seed, traced: traced) { simulation in
            simulation.captureExecutors()
            now = { simulation.now }
            let network = SimulatedNetwork(simulation)
            (network.link.latency, network.link.jitter) = (.milliseconds(30), .milliseconds(20))
            network.link.lossRate = 0.01
            let web = network.addHost("web", service: .init(watchdogPeriod: .seconds(1_800)), mayFail: true) { _ in
                var settings = Settings()
                (settings.address, settings.port, settings.threads) = ("0.0.0.0", 80, 2)
                settings.uploads = "/uploads"
                let log = Logger(label: "web", factory: { _ in SwiftLogNoOpLogHandler() })
                _ = try WebDaemon(settings, log).run()
            }
            let visitors = (0..<clients).map { DayClient($0, on: simulation.loop, self) }
            let members = (0..<members).map { DayMember($0, on: simulation.loop, self) }
            var random = simulation.loop.randomNumbers
            for _ in 0..<hours {
                simulation.advance(by: .seconds(3_600))
                trouble(Int.random(in: 0..<8, using: &random), web, network, simulation, &random)
                if case .failed(let error)? = web.ending { fail("the daemon has failed: \(error)") }
                checkDisk(web)
                if !web.isRunning { web.start() }
            }
            simulation.advance(by: .seconds(1))
            web.send(.terminate)
            simulation.advance(by: .seconds(100))
            if case .returned? = web.ending {} else { fail("the daemon does not stop: \(web.ending as Any)") }
            checkDisk(web)
            let left = web.disk.contentsOfDirectory(at: "/uploads")?.filter { $0.hasPrefix(".") } ?? []
            if !left.isEmpty { fail("incomplete files are left: \(left)") }
            withExtendedLifetime((visitors, members)) {}
            return simulation.trace
        }
    }

    private func checkDisk(_ web: SimulatedHost) {
        for (name, content) in stored.sorted(by: { $0.key < $1.key })
        where web.disk.contents(of: "/uploads/\(name)") != content {
            fail("the acknowledged upload \(name) is not whole")
        }
    }

    private func trouble(
        _ kind: Int, _ web: SimulatedHost, _ network: SimulatedNetwork, _ simulation: Simulation,
        _ random: inout RunLoop.RandomNumbers
    ) {
        switch kind {
        case 0...1: web.crash()
        case 2: web.send(.kill)
        case 3:
            network.partition([web])
            simulation.advance(by: .seconds(Int.random(in: 1...1_000, using: &random)))
            network.heal()
        case 4:
            (web.disk.capacity, isDiskFull) = (0, true)
            simulation.advance(by: .seconds(Int.random(in: 1...1_000, using: &random)))
            web.disk.capacity = nil
            // Answers about the full disk may be under way.
            simulation.advance(by: .seconds(600))
            isDiskFull = false
        case 5:
            web.send(.terminate)
            simulation.advance(by: .seconds(100))
        case 6: web.send(.hangUp)
        default: web.disk.slow(.sync, by: .milliseconds(Int.random(in: 0...500, using: &random)))
        }
    }
}
