import GRPCCore
import GRPCNIOTransportHTTP2
import Glibc
import NIOCore
import RunLoopHosts
import RunLoopKit
import RunLoopNIO
import RunLoopSimulation
import RunLoopTesting
import RunLoopUnix
import Synchronization

// `Protocols` serves and asks with each protocol over loopback and then between simulated hosts, prints the answers,
// and fails if some are missing. `Protocols SEED` prints only the answers of the simulated hosts, with their times.

private typealias Address = NIOCore.SocketAddress
private typealias Log = @Sendable (String) -> Void

/// A protocol with a server that serves until its task is cancelled, and a client.
private struct Case {
    let name: String
    let serve: @Sendable (Address, any EventLoopGroup, @escaping @Sendable (Address) -> Void) async throws -> Void
    let ask: @Sendable (Address, any EventLoopGroup, Log) async throws -> Void
    let answers: [String]
}

private let cases = [
    Case(
        name: "gRPC",
        serve: { address, group, bound in
            let listener = RunLoopListener(eventLoopGroup: group, address: address, bound: bound)
            let transport = HTTP2ServerTransport.Custom(listenerFactory: listener)
            try await GRPCServer(transport: transport, services: [EchoService()]).serve()
        },
        ask: { try await call($0, on: $1, $2) },
        answers: ["one: echo hello", "stream: 100"]),
    Case(
        name: "Hummingbird",
        serve: { try await serveRoutes(at: $0, on: $1, bound: $2) },
        ask: { try await askForRoutes($0, on: $1, $2) },
        answers: [
            "/hello/world: 200, hello world", "/nowhere: 404, ", "/count: 200, 3000000 bytes",
            "/lines: 200, 8890 characters",
        ]),
]

extension Case {
    func runOverLoopback(on group: any EventLoopGroup) async throws -> [String] {
        let answers = Mutex<[String]>([])
        let (addresses, bound) = AsyncStream.makeStream(of: Address.self)
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask {
                do { try await serve(try Address(ipAddress: "127.0.0.1", port: 0), group) { bound.yield($0) } } catch {
                    if !Task.isCancelled { throw error }
                }
            }
            for await address in addresses {
                try await ask(address, group) { answer in answers.withLock { $0.append(answer) } }
                break
            }
            tasks.cancelAll()
        }
        return answers.withLock(\.self)
    }

    /// - Parameter isTimed: `true` to add its time to each answer.
    func runOnHosts(seed: UInt64, isTimed: Bool) -> [String] {
        let answers = Mutex<[String]>([])
        withSimulation(seed: seed) { simulation in
            simulation.captureExecutors()
            let network = SimulatedNetwork(simulation)
            (network.link.latency, network.link.jitter, network.link.lossRate) = (
                .milliseconds(20), .milliseconds(5), 0.05
            )
            let address = try! Address(ipAddress: "10.9.9.9", port: 80)
            network.addHost("server", addresses: ["10.9.9.9"]) { loop in
                let group = loop.nio
                loop.task { try? await serve(address, group) { _ in } }
            }
            network.addHost("client") { loop in
                let group = loop.nio
                loop.task {
                    try await Task.sleep(for: .seconds(1))
                    do {
                        try await ask(address, group) { answer in
                            let time = isTimed ? "\(simulation.now) " : ""
                            answers.withLock { $0.append("\(time)\(answer)") }
                        }
                    } catch { answers.withLock { $0.append("\(error)") } }
                }
            }
            simulation.advance(by: .seconds(600))
        }
        return answers.withLock(\.self)
    }
}

@main
enum Protocols {
    static func main() async throws {
        if let seed = CommandLine.arguments.dropFirst().first.flatMap({ UInt64($0) }) {
            for one in cases { print(one.name, one.runOnHosts(seed: seed, isTimed: true)) }
            return
        }
        let group = makeGroup()
        var failed = false
        for one in cases {
            for (place, answers) in [
                ("over loopback", try await one.runOverLoopback(on: group)),
                ("on simulated hosts", one.runOnHosts(seed: 1, isTimed: false)),
            ] {
                let isRight = answers == one.answers
                print("\(one.name) \(place): \(isRight ? "passed" : "FAILED, with \(answers)")")
                failed = failed || !isRight
            }
        }
        try await group.shutdownGracefully()
        exit(failed ? 1 : 0)
    }

    /// Makes the group outside of a task, because this blocks.
    private static func makeGroup() -> RunLoopEventLoopGroup { RunLoopEventLoopGroup(try! LoopGroup(count: 2)) }
}
