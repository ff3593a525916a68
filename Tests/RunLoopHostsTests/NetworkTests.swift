import Glibc
@_spi(Ports) import RunLoopCore
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopUnix
import TestSupport
import Testing

/// Runs an echo server on port 7.
@Sendable func echo(on loop: RunLoop) throws {
    _ = try Listener(address: Endpoint("0.0.0.0", port: 7), on: loop) { _, descriptor, _ in
        let connection = Connection(adopting: descriptor, on: loop) { connection, bytes in
            connection.write(bytes)
            return bytes.count
        }
        try? connection.start()
    }
}

/// Events that a test's own client has seen, in order, with times in milliseconds.
final class Client {
    private(set) var connection: Connection?
    private(set) var received: [UInt8] = []
    private(set) var events: [String] = []
    private let loop: RunLoop

    init(_ simulation: Simulation, to host: String, port: UInt16 = 7, timeout: Duration = .seconds(600)) {
        loop = simulation.loop
        Connection.connect(host: host, port: port, on: loop, timeout: timeout) { [self] _, bytes in
            if received.isEmpty { note("received") }
            bytes.withUnsafeBufferPointer { received += $0 }
            return bytes.count
        } completion: { [self] result in
            switch result {
            case .success(let connection):
                self.connection = connection
                note("connected")
                connection.closeHandler = { [weak self] in self?.note("\($1)") }
                try? connection.start()
            case .failure(let error): note("\(error)")
            }
        }
    }

    func forget() {
        received = []
        events = []
    }

    private func note(_ text: String) {
        let milliseconds = loop.now.nanoseconds / 1_000_000
        events.append("\(milliseconds) \(text)")
    }
}

/// A network whose hosts have only IPv4 addresses, so that nothing is tried twice.
extension SimulatedNetwork {
    @discardableResult
    fileprivate func addServer(_ name: String = "server", program: @escaping @Sendable (RunLoop) throws -> Void = echo)
        -> SimulatedHost
    {
        addHost(name, addresses: ["10.1.0.1"], program: program)
    }
}

@Suite("A simulated network")
struct NetworkTests {
    @Test("a client finds a server by its name, and every byte comes back")
    func echoes() {
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            network.addServer()
            let client = Client(simulation, to: "server")
            simulation.advance(by: .seconds(1))
            let sent = randomBytes(300_000, seed: 1)
            client.connection?.write(sent)
            client.connection?.finishWriting()
            simulation.advance(by: .seconds(60))
            #expect(areSame(client.received, sent))
            #expect(client.events.last?.hasSuffix("ended") == true)
        }
    }

    @Test("a request takes as long as its links take")
    func latency() {
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            let server = network.addServer()
            var link = NetworkLink()
            link.latency = .milliseconds(30)
            network.setLink(link, from: network.test, to: server)
            link.latency = .milliseconds(10)
            link.bandwidth = 1_000_000
            network.setLink(link, from: server, to: network.test)
            let client = Client(simulation, to: "server")
            simulation.advance(by: .seconds(1))
            // There and back.
            #expect(client.events == ["40 connected"])
            client.connection?.write([1])
            simulation.advance(by: .milliseconds(50))
            #expect(client.events.last == "1040 received")
            client.forget()
            simulation.advance(to: .init(nanoseconds: 2_000_000_000))
            client.connection?.write([UInt8](repeating: 1, count: 10_000))
            simulation.advance(by: .milliseconds(49))
            #expect(client.received.count < 10_000)
            // Each piece takes a nanosecond longer than it should.
            simulation.advance(by: .milliseconds(2))
            #expect(client.received.count == 10_000)
        }
    }

    @Test("without a listener: refused after a round trip; without a host: unreachable; a host that is down: no answer")
    func refused() {
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            let server = network.addServer { _ in }
            let client = Client(simulation, to: "server")
            network.setAnswer(.addresses(["10.9.9.9"]), for: "nowhere")
            let lost = Client(simulation, to: "nowhere")
            simulation.advance(by: .seconds(1))
            #expect(client.events == ["1 connect to 10.1.0.1:7: Connection refused (errno 111)"])
            #expect(lost.events == ["0 connect to 10.9.9.9:7: Network is unreachable (errno 101)"])
            server.crash()
            let patient = Client(simulation, to: "server")
            let hasty = Client(simulation, to: "server", timeout: .seconds(10))
            simulation.advance(by: .seconds(600))
            #expect(hasty.events == ["11000 connect to 10.1.0.1:7: Connection timed out (errno 110)"])
            // As Linux does: five tries a second apart, then pauses of 2, 4, 8, 16 and 32 s, and 64 s for the last one.
            #expect(patient.events == ["132000 connect to 10.1.0.1:7: Connection timed out (errno 110)"])
        }
    }

    @Test("names: a host's own, others, some that fail, some that take their time, and some that change")
    func names() {
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            network.addServer()
            network.addHost("other", addresses: ["10.1.0.2"]) { _ in }
            network.setAnswer(.failure(.unavailable, reason: "ask again"), for: "broken")
            network.setAnswer(.delayed(.seconds(5), .addresses(["10.1.0.1"])), for: "slow")
            var clients = ["unknown", "broken", "slow"].map { Client(simulation, to: $0) }
            simulation.advance(by: .seconds(10))
            #expect(clients[0].events == ["0 look up unknown: Name or service not known"])
            #expect(clients[1].events == ["0 look up broken: ask again"])
            #expect(clients[2].events == ["5001 connected"])
            network.setAnswer(.addresses(["10.1.0.2"]), for: "slow")
            clients.append(Client(simulation, to: "slow"))
            simulation.advance(by: .seconds(10))
            #expect(clients[3].events == ["10001 connect to 10.1.0.2:7: Connection refused (errno 111)"])
        }
    }

    @Test("a short cut of a link delays data; a long one ends a sending connection without notice to the other side")
    func cuts() {
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            let server = network.addServer()
            let client = Client(simulation, to: "server")
            simulation.advance(by: .seconds(1))
            network.cut(between: network.test, and: server)
            client.connection?.write([1])
            simulation.advance(by: .seconds(10))
            #expect(client.received.isEmpty && client.connection?.isOpen == true)
            network.heal()
            // Sent again after 0.2, 0.6, 1.4, 3, 6.2 and 12.6 s.
            simulation.advance(by: .seconds(10))
            #expect(client.events.last == "13601 received")
            client.forget()
            network.partition([server])
            client.connection?.write([2])
            simulation.advance(by: .seconds(2_000))
            // No answer comes for a quarter of an hour.
            #expect(client.events.count == 1 && client.events[0].contains("Connection timed out"))
            #expect(client.connection?.isOpen == false)
        }
    }

    @Test("an answer that finds no way is none: a reset comes when the link is healed, and a refusal does not come")
    func oneWay() {
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            let server = network.addServer()
            let client = Client(simulation, to: "server")
            simulation.advance(by: .seconds(1))
            server.crash()
            server.start()
            network.cut(from: server, to: network.test)
            client.connection?.write([1])
            simulation.advance(by: .seconds(60))
            #expect(client.connection?.isOpen == true)
            network.heal()
            simulation.advance(by: .seconds(60))
            #expect(client.events.last?.contains("Connection reset by peer") == true)
            // A listener that closes between the answer and the last word resets the connection.
            server.start()
            network.link.latency = .seconds(1)
            let refused = Client(simulation, to: "server", timeout: .seconds(20))
            simulation.advance(by: .milliseconds(2_500))
            #expect(refused.connection?.isOpen == true)
            server.remote?.perform { $0.stop() }
            simulation.advance(by: .seconds(10))
            #expect(refused.events.last?.contains("Connection reset by peer") == true)
            server.start()
            // The machine goes down between the request for a connection and the answer.
            network.link.latency = .seconds(1)
            let late = Client(simulation, to: "server", timeout: .seconds(20))
            simulation.advance(by: .milliseconds(1_500))
            server.crash()
            simulation.advance(by: .seconds(60))
            #expect(late.events.count == 1 && late.events[0].contains("Connection timed out"))
        }
    }

    @Test("connections beyond the backlog wait for their turn")
    func backlog() {
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            let accepted = Locked(0)
            network.addServer { loop in
                var options = Listener.Options()
                options.backlog = 1
                let listener = try Listener(
                    address: Endpoint("0.0.0.0", port: 7), on: loop, inModes: "later", options: options
                ) { _, descriptor, _ in
                    accepted.withLock { $0 += 1 }
                    try? Connection(adopting: descriptor, on: loop) { $1.count }.start()
                }
                loop.perform(afterDelay: .seconds(5)) {
                    loop.run(in: "later", until: loop.now + .seconds(100))
                    listener.close()
                }
            }
            let clients = (0..<4).map { _ in Client(simulation, to: "server") }
            simulation.advance(by: .seconds(4))
            #expect(clients.filter { $0.connection != nil }.count == 2 && accepted.withLock(\.self) == 0)
            simulation.advance(by: .seconds(16))
            #expect(clients.allSatisfy { $0.connection != nil } && accepted.withLock(\.self) == 4)
        }
    }

    @Test("a reset in the middle is an error at both ends")
    func resets() {
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            let reasons = Locked<[String]>([])
            let server = network.addServer { loop in
                _ = try Listener(address: Endpoint("0.0.0.0", port: 7), on: loop) { _, descriptor, _ in
                    let connection = Connection(adopting: descriptor, on: loop) { $1.count }
                    connection.closeHandler = { _, reason in reasons.withLock { $0.append("\(reason)") } }
                    try? connection.start()
                }
            }
            let client = Client(simulation, to: "server")
            simulation.advance(by: .seconds(1))
            network.reset(between: server, and: network.test)
            simulation.advance(by: .seconds(1))
            let reset = "Connection reset by peer"
            #expect(client.events.last?.contains(reset) == true)
            #expect(reasons.withLock(\.self).map { $0.contains(reset) } == [true])
        }
    }

    @Test(
        "a reset reaches the server's end of a connection that is not accepted yet, also on its way to the listener",
        arguments: [1_200, 1_000_000], [false, true])
    func resetBeforeAccept(microseconds: Int, isServerFirst: Bool) {
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            let reads = Log<String>()
            let server = network.addServer { loop in
                let listener = try Listener(address: Endpoint("0.0.0.0", port: 7), on: loop)
                loop.task {
                    try await loop.clock.sleep(for: .seconds(5))
                    let connection = try await listener.accept()
                    do { reads("\(try await connection?.read() ?? [])") } catch { reads("\(error)") }
                    listener.close()
                }
            }
            let client = Client(simulation, to: "server")
            simulation.advance(by: .microseconds(microseconds))
            if isServerFirst {
                network.reset(between: server, and: network.test)
            } else {
                network.reset(between: network.test, and: server)
            }
            #expect(simulation.runUntilIdle() == .done)
            #expect(client.connection?.isOpen == false)
            let error = "read from the connection: Connection reset by peer (errno 104)"
            #expect(reads.entries == ["the connection was closed: failed(\(error))"])
        }
    }

    @Test("lossy links with jitter deliver everything, in order")
    func lossy() {
        for seed: UInt64 in 0..<20 {
            withSimulation(seed: seed) { simulation in
                let network = SimulatedNetwork(simulation)
                network.link.latency = .milliseconds(20)
                network.link.jitter = .milliseconds(50)
                network.link.lossRate = 0.2
                network.addServer()
                let client = Client(simulation, to: "server")
                simulation.advance(by: .seconds(60))
                let sent = randomBytes(20_000, seed: seed)
                client.connection?.write(sent)
                simulation.advance(by: .seconds(600))
                #expect(areSame(client.received, sent), "seed \(seed)")
            }
        }
    }

    @Test("a socket of a path is the host's own; the path stays when the host is gone, and is taken again")
    func paths() {
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            let log = Locked<[String]>([])
            let server = network.addServer { loop in
                let path = try Endpoint(path: "/run/control")
                do {
                    _ = try Listener(address: path, on: loop) { _, descriptor, peer in
                        log.withLock { $0.append("accepted \(peer)") }
                        try? Connection(adopting: descriptor, on: loop) { $1.count }.start()
                    }
                } catch {
                    log.withLock { $0.append("\(error)") }
                }
                Connection.connect(to: path, on: loop) { result in
                    log.withLock { $0.append("connected \((try? result.get()) != nil)") }
                    try? result.get().start()
                }
            }
            simulation.advance(by: .seconds(1))
            #expect(log.withLock(\.self).sorted() == ["accepted unnamed", "connected true"])
            var outside: (any Error)?
            Connection.connect(to: try! Endpoint(path: "/run/control"), on: simulation.loop) {
                if case .failure(let error) = $0 { outside = error }
            }
            simulation.advance(by: .seconds(1))
            #expect("\(outside!)".contains("No such file"))
            // The file of the former process is in the way, without a listener.
            log.withLock { $0 = [] }
            server.crash()
            server.start()
            simulation.advance(by: .seconds(1))
            #expect(log.withLock(\.self).sorted() == ["accepted unnamed", "connected true"])
        }
    }
}
