import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopTesting
import SimulatedXCTest
import Synchronization

extension CopiedTest {
    /// Runs the test on a host whose default executor has four threads.
    ///
    /// - Returns: `true` if it passed.
    func runOnHost(seed: UInt64) -> Bool {
        let outcome = Mutex("did not end in an hour")
        return simulate(name, seed: seed) { simulation, network in
            network.addHost("host") { loop in
                loop.task {
                    let result = await Task.detached { try await run() }.result
                    outcome.withLock { outcome in
                        switch result {
                        case .success: outcome = "passed"
                        case .failure(let skip as XCTSkip): outcome = "skipped \(skip.message ?? "")"
                        case .failure(let error): outcome = "threw \(error)"
                        }
                    }
                }
            }
            simulation.advance(by: .seconds(3_600))
            let failures = Failures.take()
            return failures.isEmpty ? outcome.withLock(\.self) : failures.joined(separator: "; ")
        }
    }
}

/// Runs code in a simulated network, and prints its result, and its trace in one number.
///
/// - Parameter body: returns "passed", or anything else.
/// - Returns: `true` if the code passed, and nothing escaped.
func simulate(_ name: String, seed: UInt64, _ body: (Simulation, SimulatedNetwork) throws -> String) -> Bool {
    withSimulation(seed: seed, traced: true) { simulation in
        simulation.captureExecutors(width: 4)
        let network = SimulatedNetwork(simulation)
        network.link.latency = .milliseconds(20)
        network.link.jitter = .milliseconds(10)
        var outcome: String
        do { outcome = try body(simulation, network) } catch { outcome = "threw \(error)" }
        outcome += simulation.isReproducible ? "" : ", escapes: \(simulation.escapes)"
        // FNV-1a.
        let digest = simulation.trace.joined(separator: "\n").utf8.reduce(14_695_981_039_346_656_037 as UInt64) {
            ($0 ^ UInt64($1)) &* 1_099_511_628_211
        }
        print(name, outcome, "\(simulation.trace.count) events \(String(digest, radix: 16))")
        return outcome == "passed"
    }
}
