import RunLoopCore
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopTLS
import RunLoopUnix
import TLSTestSupport
import TestSupport
import Testing

@Suite("Values that a failed expectation inspects, on simulated hosts")
struct ReflectionTests {
    @Test("an expectation on a host fails like any other")
    func failing() {
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            let host = network.addHost("worker") { loop in loop.perform(afterDelay: .seconds(5)) {} }
            simulation.advance(by: .seconds(1))
            withKnownIssue { #expect(!host.isRunning) }
            withKnownIssue { #expect(network.test.isRunning && host.disk.capacity == 5) }
            withKnownIssue { #expect(simulation.now == .distantPast) }
        }
    }

    @Test("a mirror shows nothing inside a host, or inside the objects that a daemon holds on it")
    func handles() {
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            let seen = Counter()
            @Sendable func look(_ handles: Any...) {
                for handle in handles {
                    #expect(isOpaque(handle), "\(type(of: handle))")
                    reflect(handle)
                    seen.add()
                }
            }
            let server = network.addHost("server") { loop in
                let any = try Endpoint("0.0.0.0", port: 7)
                let listener = try Listener(address: any, on: loop) { listener, descriptor, _ in
                    let connection = Connection(adopting: descriptor, on: loop) { connection, bytes in
                        look(connection, listener)
                        connection.write("hello")
                        return bytes.count
                    }
                    try? connection.start()
                }
                let child = try ChildProcess.spawn(.path("/bin/child"))
                let file = try Disk.current.open("/data/file", .readingAndWritingLocked)
                let daemon = Daemon(loop: loop, manager: try ServiceManager())
                look(
                    listener, child, child.remote, ChildSource(child) { _, _ in }, Disk.current, file,
                    try FileWatcher(),
                    try SignalSource(signal: .hangUp) { _ in }, daemon, daemon.remote, try ServiceManager(),
                    try loop.deliveries(of: .terminate))
            }
            server.install(program: "/bin/child") { process in
                look(process)
                process.loop.perform(afterDelay: .seconds(5)) {}
            }
            let loop = simulation.loop
            let attempt = Connection.connect(host: "server", port: 7, on: loop) { connection, bytes in
                look(connection)
                return bytes.count
            } completion: { result in
                guard let connection = try? result.get() else { return }
                try? connection.start()
                connection.write("hello")
            }
            look(attempt, HostResolver.resolve("server", port: 7, on: loop) { reflect($0) })
            simulation.advance(by: .seconds(1))
            look(network, server, server.disk, simulation)
            for value in [server.processes, server.messages, simulation.standing, simulation.waits] as [Any] {
                reflect(value)
            }
            #expect(seen.value > 20, "\(seen.value)")
        }
    }

    @Test("classes whose objects take more to make are opaque, too")
    func types() {
        let types: [Any.Type] = [
            Relay.self, LoopGroup.self, PipeEnd.self, Watchdog.self, TLSSession.self, TLSClientContext.self,
            TLSServerContext.self, Simulation.Hold.self,
        ]
        for type in types { #expect(type is any CustomReflectable.Type, "\(type)") }
    }
}
