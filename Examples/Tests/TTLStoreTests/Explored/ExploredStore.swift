import ArgumentParser
import Logging
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopUnix

@testable import TTLStore

/// A store and two clients for a few seconds.
///
/// The requests of the clients are open, as is their choice to wait for the replies. Also open are the times when the
/// store's host crashes or is cut off, and when the store is killed, stopped or asked to rewrite its log; the number of
/// its loops; and the safety of its log.
///
/// Unchecked: in a simulation only the thread whose turn it is gets here.
final class ExploredStore: @unchecked Sendable {
    /// The keys by name. Each is set over one connection: requests sent over an abandoned one may arrive later.
    var keys: [String: KnownKey] = [:]
    private let simulation: Simulation
    private let loop: RunLoop
    private let network: SimulatedNetwork
    private let store: SimulatedHost
    private let sync: String
    private var crashes: [RunLoop.Instant] = []
    private var failures: [String] = []

    /// A promise broken by the store.
    struct Broken: Error, CustomStringConvertible {
        let description: String
    }

    init(_ simulation: Simulation) {
        self.simulation = simulation
        loop = simulation.loop
        network = SimulatedNetwork(simulation)
        sync = simulation.choice("when changes are safe", of: ["always", "everysec"])
        let loops = simulation.choice("loops", of: [1, 2])
        let arguments = ["--bind", "0.0.0.0", "--log", "/data/log", "--fsync", sync, "--loops", "\(loops)"]
        store = network.addHost("store", addresses: ["10.1.0.1"]) { _ in
            let log = Logger(label: "ttlstore", factory: { _ in SwiftLogNoOpLogHandler() })
            let status = try StoreDaemon(try TTLStore.parse(arguments), log).run()
            if status != 0 { throw ExitCode(status) }
        }
        store.disk.slow(.sync, by: .milliseconds(5))
    }

    func run() throws {
        let pause: Duration = simulation.choice("how long a repair takes", of: [.seconds(2), .milliseconds(300)])
        mayBeTroubled()
        for number in 1...2 {
            loop.task(name: "client \(number)") { [self] in
                for visit in 1...2 {
                    try? await send(of: "c\(number).\(visit)")
                    try await loop.clock.sleep(for: .milliseconds(100))
                }
            }
        }
        for _ in 0..<4 { advance(by: pause) }
        simulation.advance(by: .seconds(5))
        var hasLooked = false
        loop.task(name: "audit") { [self] in
            // Again if there was trouble.
            while (try? await look()) == nil { try await loop.clock.sleep(for: .milliseconds(100)) }
            hasLooked = true
        }
        for _ in 0..<40 where !hasLooked { advance(by: pause) }
        if !hasLooked { fail("nobody answers") }
        if let failure = failures.first { throw Broken(description: failure) }
    }

    /// Advances the time, then starts the store again if it does not run, and mends its link.
    private func advance(by duration: Duration) {
        simulation.advance(by: duration)
        if case .failed(let error)? = store.ending { fail("the store has failed: \(error)") }
        store.start()
        network.heal()
    }

    func fail(_ text: String) {
        failures.append(text)
    }

    /// Returns `true` if a change acknowledged at that instant has to be there.
    func isSafe(_ instant: RunLoop.Instant) -> Bool {
        sync == "always" || crashes.allSatisfy { $0 < instant || instant + .seconds(2) < $0 }
    }

    // MARK: Trouble

    private func mayBeTroubled() {
        simulation.mayHappen("the store crashes") { [self] in
            crashes.append(simulation.now)
            store.crash()
        }
        simulation.mayHappen("the store is killed") { [store] in store.send(.kill) }
        simulation.mayHappen("the store is stopped") { [store] in store.send(.terminate) }
        simulation.mayHappen("the log is to be written anew") { [store] in store.send(.hangUp) }
        simulation.mayHappen("the store is cut off") { [network, store] in network.partition([store]) }
    }

    // MARK: Clients

    private nonisolated(nonsending) func send(of key: String) async throws {
        let client = try await ExploredClient(on: loop, of: self)
        defer { client.close() }
        keys[key] = KnownKey()
        for number in 1...3 {
            let requests: [ExploredClient.Request] = [.set(number), .set(number, seconds: 1), .get]
            // Usually one of each.
            let rotated = Array(requests[(number - 1)...] + requests[..<(number - 1)])
            try await client.send(simulation.choice("\(key) asks for", of: rotated), key)
            if !simulation.mayHappen("\(key) does not wait") { try await client.takeReplies() }
        }
        try await client.end()
    }

    /// Looks for all keys that were set.
    private nonisolated(nonsending) func look() async throws {
        let client = try await ExploredClient(on: loop, of: self)
        defer { client.close() }
        for key in keys.keys.sorted() { try await client.send(.get, key) }
        try await client.end()
    }
}
