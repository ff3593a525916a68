import Glibc
import Logging
import RunLoopHTTP
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopUnix
import WebhooksTestSupport

@testable import Webhooks

/// Some hours of the service, with clients and two destinations, and with the answers that the clients got.
///
/// Unchecked: in a simulation only the thread whose turn it is gets here.
final class Day: @unchecked Sendable {
    let simulation: Simulation
    let network: SimulatedNetwork
    let service: SimulatedHost
    let receivers: [SimulatedHost]
    /// What each destination has taken: a key and a body.
    let taken = Log<String>()
    /// The keys that were acknowledged, and those that were refused for certain.
    private(set) var acknowledged: [String] = []
    private(set) var refused: [String] = []
    private let client: HTTPClient
    private var last = 0
    private var underWay = 0
    /// Called once, at an acknowledgement.
    var acknowledgement: (() -> Void)?

    /// - Parameters:
    ///   - pauses: the settings of the pauses between tries, in seconds.
    ///   - lifetimeHours: the age at which hooks are given up.
    ///   - serve: the program of a destination, which adds a key and a body to the list for each hook that it takes.
    init(
        _ simulation: Simulation, pauses: (first: Double, longest: Double) = (5, 600), lifetimeHours: Double = 1_000,
        serve: @escaping @Sendable (RunLoop, Log<String>) throws -> Void
    ) {
        self.simulation = simulation
        let (network, taken) = (SimulatedNetwork(simulation), taken)
        self.network = network
        // On a broken disk it does not start; the service manager tries again.
        service = network.addDaemon(
            "service", addresses: ["10.1.0.1"], service: .init(watchdogPeriod: .seconds(60)), mayFail: true
        ) { _ in
            let logger = Logger(label: "webhooks", factory: { _ in SwiftLogNoOpLogHandler() })
            return try Service(settings: "/settings", log: "/data/log", logger).run(at: "0.0.0.0", port: 80)
        }
        receivers = ["quick", "other"].map { name in
            network.addHost(name) { loop in try serve(loop, taken) }
        }
        let destinations = ["quick", "other"].map {
            #""\#($0)": {"address": "http://\#($0)/in", "simultaneous": 3, "backlog": 5000}"#
        }
        let settings = """
            {"destinations": {\(destinations.joined(separator: ", "))}, "hookBytes": 1000,
            "firstPauseSeconds": \(pauses.first), "longestPauseSeconds": \(pauses.longest), "lifetimeHours": \(lifetimeHours)}
            """
        service.disk.install(Array(settings.utf8), at: "/settings")
        service.disk.installDirectory(at: "/data")
        var options = HTTPClient.Options()
        options.answerTime = .seconds(20)
        client = HTTPClient(on: simulation.loop, options: options)
    }

    /// Sends a hook from the test's own host.
    func send(body: String? = nil) {
        last += 1
        underWay += 1
        let key = "k\(last)"
        simulation.loop.task { [self] in
            defer { underWay -= 1 }
            do {
                let request = try HTTPRequest(
                    .post, "http://service/hooks/\(last % 3 == 0 ? "other" : "quick")",
                    headerFields: [.init("Idempotency-Key")!: key])
                let answer = try await client.send(request, body: .text(body ?? "{\"key\": \"\(key)\"}"))
                _ = try? await answer.body.collect(upTo: 10_000)
                switch answer.status.code {
                case 202:
                    acknowledged.append(key)
                    acknowledgement?()
                    acknowledgement = nil
                case 400, 413, 429, 507: refused.append(key)
                default: break
                }
            } catch {
                // Nobody knows whether the hook was stored.
            }
        }
    }

    /// Waits until no hook is left, stops the service, and returns the promises that it has broken.
    func end() -> [String] {
        var failures: [String] = []
        service.disk.capacity = nil
        for _ in 0..<200 {
            // In an exploration, trouble may come at any time.
            network.heal()
            for host in [service] + receivers where !host.isRunning { host.start() }
            simulation.advance(by: .seconds(60))
            if isDone { break }
        }
        service.send(.terminate)
        simulation.advance(by: .seconds(60))
        switch service.ending {
        case .exited(0), .killed(.kill), .crashed: break
        case let ending: failures.append("the service has ended: \(ending as Any)")
        }
        let keys = Set(taken.entries.map { String($0.prefix { $0 != " " }) })
        for key in acknowledged where !keys.contains(key) { failures.append("\(key) was acknowledged and is lost") }
        for key in refused where keys.contains(key) { failures.append("\(key) was refused and delivered") }
        for entry in Set(taken.entries) {
            let key = entry.prefix { $0 != " " }
            if entry != "\(key) {\"key\": \"\(key)\"}" { failures.append("another body: \(entry)") }
        }
        return failures
    }

    private var isDone: Bool {
        let keys = Set(taken.entries.map { String($0.prefix { $0 != " " }) })
        return underWay == 0 && acknowledged.allSatisfy(keys.contains)
    }
}
