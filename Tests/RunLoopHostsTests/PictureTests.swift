import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopUnix
import TestSupport
import Testing

@Suite("Pictures of hosts, and how they stand")
struct PictureTests {
    /// Runs an echo whose server crashes, with the notes of the simulation.
    private static func crash(seed: UInt64, _ body: (Simulation) -> Void) {
        withSimulation(seed: seed) { simulation in
            let network = SimulatedNetwork(simulation)
            let server = network.addHost("server", addresses: ["10.1.0.1"]) { loop in
                _ = try Listener(address: Endpoint("0.0.0.0", port: 7), on: loop) { _, descriptor, _ in
                    let echo = Connection(adopting: descriptor, on: loop) {
                        $0.write($1); return $1.count
                    }
                    try? echo.start()
                }
            }
            network.addHost("client") { loop in
                Connection.connect(host: "server", port: 7, on: loop) {
                    $1.count
                } completion: { result in
                    guard let connection = try? result.get() else { return }
                    connection.closeHandler = { _, reason in simulation.note("\(reason)") }
                    try? connection.start()
                    loop.perform(afterDelay: .seconds(60)) { connection.write("hello") }
                    loop.perform(afterDelay: .seconds(120)) { connection.write("are you there?") }
                }
            }
            simulation.advance(by: .seconds(90))
            server.crash()
            simulation.advance(by: .seconds(31))
            server.start()
            simulation.advance(by: .seconds(60))
            server.send(.terminate)
            body(simulation)
        }
    }

    @Test("messages, losses, crashes and starts, byte for byte from a seed")
    func picture() {
        Self.crash(seed: 1) { simulation in
            #expect(
                simulation.picture == """
                    seed 1, at 181.000000000
                             time  server  client
                      0.000000000  ●               started
                                   │       ●       started
                      0.001000000  │       ●       connected 10.255.0.2:49153 to 10.1.0.1:7
                     60.001500000  │◀──────┤       1 byte
                     60.001500001  │◀──────┤       3 bytes
                     60.001500002  │◀──────┤       1 byte
                     60.002000000  ├──────▶│       1 byte
                     60.002000001  ├──────▶│       3 bytes
                     60.002000002  ├──────▶│       1 byte
                     90.000000000  ✕       │       crashed
                    120.001500000   ✕──────┤       14 bytes, lost
                    120.201500000   ✕──────┤       14 bytes, lost
                    120.601500000   ✕──────┤       14 bytes, lost
                    121.000000000  ●       │       started
                    121.402000000  │       ●       10.255.0.2:49153 to 10.1.0.1:7: Connection reset by peer
                                   │       ●       failed(read from the connection: Connection reset by peer (errno 104))
                                   │       ✕       process 2 exited with code 0
                    181.000000000  ●               SIGTERM to process 3
                                   ✕               process 3 ended by SIGTERM
                    Timers are not shown, because the simulation is not traced.
                    """)
        }
    }

    @Test("a message goes across the lanes between, in both directions, and the test is a host")
    func across() {
        withSimulation(seed: 4) { simulation in
            let network = SimulatedNetwork(simulation)
            let idler = network.addHost("idler") { $0.add(CustomSource(), forMode: .default) }
            let server = network.addHost("a server", addresses: ["10.1.0.1"]) { loop in
                _ = try Listener(address: Endpoint("0.0.0.0", port: 7), on: loop) { _, descriptor, _ in
                    let echo = Connection(adopting: descriptor, on: loop) {
                        $0.write($1); return $1.count
                    }
                    try? echo.start()
                }
            }
            let thread = LoopThread(name: "worker") { loop in
                Connection.connect(host: "a server", port: 7, on: loop) {
                    $1.count
                } completion: { result in
                    let connection = try? result.get()
                    try? connection?.start()
                    connection?.write("x")
                    loop.perform(afterDelay: .seconds(1)) { connection?.close() }
                }
            }
            simulation.note("begins")
            simulation.advance(by: .seconds(2))
            network.cut(between: idler, and: server)
            network.heal()
            #expect(
                simulation.picture == """
                    seed 4, at 2.000000000
                           time  test      idler     a server  network
                    0.000000000  │         ●                             started
                                 │         │         ●                   started
                                 ●         │         │                   begins
                    0.001000000  ●         │         │                   connected 10.255.0.1:49153 to 10.1.0.1:7
                    0.001500000  ├─────────┼────────▶│                   1 byte
                    0.002000000  │◀────────┼─────────┤                   1 byte
                    1.001500000  ├─────────┼────────▶│                   end
                    2.000000000  │         ●         │                   cut to a server
                                 │         │         ●                   cut to idler
                                 │         │         │         ●         healed
                    Timers are not shown, because the simulation is not traced.
                    """)
            withExtendedLifetime(thread) {}
        }
    }

    @Test("with more hosts than there is room for, an event without a lane names its host")
    func manyHosts() {
        withSimulation(seed: 5, traced: true) { simulation in
            let network = SimulatedNetwork(simulation)
            for number in 1...13 {
                network.addHost("host-\(number)") { loop in
                    loop.perform { simulation.note("here") }
                    LoopThread(name: "worker") { _ in simulation.note("and here") }.join()
                }
            }
            simulation.runUntilIdle()
            let lines = simulation.picture.split(separator: "\n")
            #expect(lines.count == 54)
            #expect(lines[1] == "          ⋮  after 12 earlier events")
            #expect(lines[2] == "       time  host-1" && lines[3] == "             │    host-2")
            #expect(lines[13] == "             │    │    │    │    │    │    │    │    │    │    │    host-12")
            #expect(
                lines[14] == "0.000000000"
                    + "  │    │    │    │    │    │    │    │    │    │    │    │    host-13: started")
            let ends = ["worker: and here", "here", "process 2 exited with code 0"].map {
                String(repeating: " ", count: 73) + "host-13: \($0)"
            }
            #expect(lines.suffix(3).map(String.init) == ends)
        }
    }

    @Test("the four ways in which hosts can stand")
    func standing() {
        withSimulation(seed: 2) { simulation in
            let network = SimulatedNetwork(simulation)
            #expect(simulation.standing == .done)
            let client = network.addHost("client") { loop in
                Connection.connect(host: "server", port: 7, on: loop) {
                    $1.count
                } completion: { result in
                    try? result.get().start()
                }
            }
            let line = #line + 2
            let server = network.addHost("server") { loop in
                _ = try Listener(address: Endpoint("0.0.0.0", port: 7), on: loop) { _, descriptor, _ in
                    let connection = Connection(adopting: descriptor, on: loop) { $1.count }
                    try? connection.start()
                    loop.perform(afterDelay: .seconds(60)) { connection.close() }
                }
            }
            simulation.advance(by: .zero)
            #expect(
                simulation.standing == .idle(until: .init(nanoseconds: 500_000), next: "a packet arrives on server"))
            let place = "RunLoopHostsTests/PictureTests.swift"
            #expect(
                "\(simulation.runUntilIdle(limit: .seconds(30)))"
                    == "idle until 60.002500000: delayed call (\(place):\(line + 3)) of server")
            #expect(
                "\(simulation.runUntilIdle())" == """
                    stuck:
                      server has waited since 60.002500000 for descriptor "listener 0.0.0.0:7" (\(place):\(line)) in default \
                    (common), descriptor 1073741827, readable
                    """)
            server.crash()
            client.crash()
            #expect(simulation.standing == .done)
        }
    }

    @Test("a task of a host that waits for real time has escaped")
    func escape() {
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            let isOver = Flag()
            network.addHost("server") { loop in
                loop.add(CustomSource(), forMode: .default)
                loop.task {
                    try? await Task.sleep(for: .milliseconds(50))
                    isOver.set()
                }
            }
            simulation.settle { isOver.isSet && !simulation.escapes.isEmpty }
            #expect(simulation.standing == .escaped(simulation.escapes))
            let escape = " came to server at 0.000000000 from a thread outside of the simulation"
            #expect("\(simulation.standing)".hasSuffix(escape))
            #expect(
                simulation.picture.hasSuffix(escape + "\nTimers are not shown, because the simulation is not traced."))
        }
    }
}
