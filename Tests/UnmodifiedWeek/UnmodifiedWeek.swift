import Foundation
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopTLS
import RunLoopTesting
import RunLoopUnix

// A week of a service and its clients, whose logic knows no loop, and uses Swift's and Foundation's own clocks, sleeps,
// random numbers, actors and tasks. Only their connections are RunLoopKit's. `UnmodifiedWeek 7` prints its events, one
// per line.

private typealias RunLoop = RunLoopKit.RunLoop

/// Values that expire by the wall clock, in an actor of Swift's default executor.
private actor Cache {
    private var values: [String: (text: String, until: Date)] = [:]
    private(set) var misses = 0

    func value(of key: String, make: @Sendable () async throws -> String) async rethrows -> String {
        if let (text, until) = values[key], until > Date() { return text }
        misses += 1
        let text = try await make()
        values[key] = (text, Date() + Double.random(in: 600..<7200))
        return text
    }

    /// Removes expired values every hour, until the task is cancelled.
    func cleanUp() async throws {
        while true {
            try await Task.sleep(for: .seconds(3600))
            values = values.filter { $0.value.until > Date() }
        }
    }
}

private struct Busy: Error {}

/// A library's retry, with exponential backoff and jitter.
private func withRetry<Value: Sendable>(_ operation: @Sendable () async throws -> Value) async throws -> Value {
    var pause = Duration.milliseconds(100)
    while true {
        do { return try await operation() } catch is Busy {}
        try await Task.sleep(for: pause * Double.random(in: 0.5..<1.5))
        pause = min(pause * 2, .seconds(60))
    }
}

/// Runs a client, which makes requests at random times, several at once.
private func live(_ name: String, _ cache: Cache, _ note: @escaping @Sendable (String) -> Void) async throws {
    let clock = ContinuousClock()
    let begin = clock.now
    while clock.now - begin < .seconds(7 * 86_400) {
        try await Task.sleep(for: .seconds(.random(in: 600..<7200)))
        let request = UUID()
        let taken = try await clock.measure {
            try await withThrowingTaskGroup(of: String.self) { group in
                for key in ["users", "prices", "news"].shuffled() {
                    group.addTask {
                        try await withRetry {
                            if Int.random(in: 0..<4) == 0 { throw Busy() }
                            return try await cache.value(of: key) {
                                try await Task.sleep(for: .milliseconds(.random(in: 1..<500)))
                                return "\(key) at \(Int(Date().timeIntervalSinceReferenceDate))"
                            }
                        }
                    }
                }
                for try await text in group { note("\(name) \(request) \(text)") }
            }
        }
        note("\(name) \(request) took \(taken)")
    }
}

/// Holds a conversation with TLS, whose key is of the curve P-256.
private func converse(
    on network: SimulatedNetwork, _ note: @escaping @Sendable (String) -> Void
) throws {
    let identity = TLSIdentity(chain: .bytes(Array(certificate.utf8)), key: .bytes(Array(key.utf8)))
    let server = try TLSServerContext(identity: identity)
    let client = try TLSClientContext(roots: .certificates(.bytes(Array(certificate.utf8))))
    network.addHost("server") { loop in
        _ = try Listener(address: Endpoint("0.0.0.0", port: 7), on: loop) { _, descriptor, _ in
            let echo = try? Connection(adopting: descriptor, on: loop, tls: server) {
                $0.write($1)
                return $1.count
            }
            try? echo?.start()
        }
    }
    network.addHost("asker") { loop in
        loop.task {
            for day in 1...7 {
                try await Task.sleep(for: .seconds(86_000))
                let connection = try await Connection.connect(host: "server", port: 7, on: loop, tls: client)
                try await connection.withStream { stream in
                    try await stream.write(Array(UUID().uuidString.utf8))
                    note("day \(day): \(String(decoding: try await stream.read() ?? [], as: UTF8.self))")
                }
            }
        }
    }
}

@main
enum UnmodifiedWeek {
    static func main() throws {
        let seed = CommandLine.arguments.dropFirst().first.flatMap { UInt64($0) } ?? 0
        try withSimulation(seed: seed, traced: true) { simulation in
            simulation.captureExecutors()
            let network = SimulatedNetwork(simulation)
            network.link.latency = .milliseconds(20)
            network.link.jitter = .milliseconds(10)
            let note: @Sendable (String) -> Void = { simulation.note($0) }
            try converse(on: network, note)
            let cache = Cache()
            let cleaner = Task { try await cache.cleanUp() }
            for number in 1...3 { Task { try await live("client \(number)", cache, note) } }
            simulation.advance(by: .seconds(8 * 86_400))
            cleaner.cancel()
            for line in simulation.trace { print(line) }
            print(simulation.escapes, simulation.isReproducible, simulation.now)
        }
    }
}

/// A key and its certificate, which is valid for a hundred years.
private let key = """
    -----BEGIN EC PRIVATE KEY-----
    MHcCAQEEIOjZDzvJnFRfrL0pvz85t5onhOPz9SeMq5MgM2KrHSfUoAoGCCqGSM49
    AwEHoUQDQgAE9lQl/PgcAYfeJReQPxo8V6Gg02oRBruepij0Tc2puXrYkNU84KAv
    kADqWDEit+AVSRHhO+vlryxSp9uAKHXyJw==
    -----END EC PRIVATE KEY-----
    """
private let certificate = """
    -----BEGIN CERTIFICATE-----
    MIIBizCCATKgAwIBAgIUNg8N+n7Tu3ZxKGaFZcocqSQXSckwCgYIKoZIzj0EAwIw
    ETEPMA0GA1UEAwwGc2VydmVyMCAXDTI2MTEyNDA3MjUzOVoYDzIxMjYxMDMxMDcy
    NTM5WjARMQ8wDQYDVQQDDAZzZXJ2ZXIwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
    AAT2VCX8+BwBh94lF5A/GjxXoaDTahEGu56mKPRNzam5etiQ1TzgoC+QAOpYMSK3
    4BVJEeE76+WvLFKn24AodfIno2YwZDAdBgNVHQ4EFgQUnyRC5CpC+wJ4k3Yw2aRw
    EsRbruswHwYDVR0jBBgwFoAUnyRC5CpC+wJ4k3Yw2aRwEsRbruswDwYDVR0TAQH/
    BAUwAwEB/zARBgNVHREECjAIggZzZXJ2ZXIwCgYIKoZIzj0EAwIDRwAwRAIgW6mr
    U1cfzI4WwajmkpRJOUYQVSFi768L0a0iz7I5deUCIA5mAesvH1gdPuEf3uzglsp7
    FIR5+lHD3ecfkTDA371X
    -----END CERTIFICATE-----
    """
