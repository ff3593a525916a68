import ExampleTestSupport
import Glibc
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopUnix
import Testing

@testable import DNSForwarder

/// Returns a query for the address of a name, or an answer to it.
private func message(_ number: UInt16, _ name: String, answer: (time: UInt32, address: [UInt8])? = nil) -> [UInt8] {
    var bytes = [UInt8(number >> 8), UInt8(truncatingIfNeeded: number), answer == nil ? 1 : 0x81, 0, 0, 1]
    bytes += [0, answer == nil ? 0 : 1, 0, 0, 0, 0]
    for label in name.split(separator: ".") { bytes += [UInt8(label.utf8.count)] + Array(label.utf8) }
    bytes += [0, 0, 1, 0, 1]
    guard let answer else { return bytes }
    let time = (0..<4).map { UInt8(truncatingIfNeeded: answer.time >> (24 - 8 * $0)) }
    return bytes + [0xc0, 12, 0, 1, 0, 1] + time + [0, 4] + answer.address
}

/// Returns the options record of a client with `room` bytes of memory.
private func options(_ room: Int) -> [UInt8] { [0, 0, 41, UInt8(room >> 8), UInt8(room & 0xff), 0, 0, 0, 0, 0, 0] }

extension [UInt8] {
    /// Returns the message with a further record after the others.
    fileprivate func with(_ record: [UInt8]) -> [UInt8] {
        var bytes = self + record
        bytes[11] += 1
        return bytes
    }
}

/// Runs a server that knows every name for five minutes.
@Sendable private func serve(
    _ last: UInt8, _ queries: Log<String>, _ ports: Log<UInt16>
) -> @Sendable (RunLoop) throws -> Void {
    { loop in
        _ = try DatagramSocket(address: Endpoint("0.0.0.0", port: 53), on: loop) { socket, bytes, header in
            let query = bytes.withUnsafeBufferPointer { Array($0) }
            queries("\(last)")
            ports.append(header.sender.port ?? 0)
            let number = UInt16(query[0]) << 8 | UInt16(query[1])
            let name = String(decoding: query[13..<13 + Int(query[12])], as: UTF8.self)
            var answer = message(number, name, answer: (300, [192, 0, 2, last]))
            // A client with options gets a long answer, with options.
            if query[11] == 1 {
                let text = [UInt8](repeating: 0, count: 3000)
                answer = answer.with([0, 0, 16, 0, 1, 0, 0, 1, 44] + [0x0b, 0xb8] + text).with(options(4096))
            }
            socket.send(answer, to: header.sender)
        }
    }
}

/// A client that asks again every second until it has an answer.
private final class Client {
    private let socket: DatagramSocket
    private let loop: RunLoop
    private(set) var answers: [UInt16: [UInt8]] = [:]
    private(set) var received = 0
    private(set) var unexpected = 0

    init(_ loop: RunLoop, _ forwarder: Endpoint) throws {
        self.loop = loop
        weak var own: Client?
        socket = try DatagramSocket(peer: forwarder, on: loop) { _, bytes, _ in
            own?.receive(bytes.withUnsafeBufferPointer { Array($0) })
        }
        own = self
    }

    private func receive(_ bytes: [UInt8]) {
        received += 1
        guard let answer = DNSMessage(bytes), answer.isAnswer else { return unexpected += 1 }
        answers[answer.number] = bytes
    }

    func send(_ bytes: [UInt8]) {
        socket.send(bytes)
    }

    func ask(_ number: UInt16, _ name: String, tries: Int = 10) {
        send(message(number, name))
        guard tries > 1 else { return }
        loop.perform(afterDelay: .seconds(1)) { [weak self] in
            if let self, answers[number] == nil { ask(number, name, tries: tries - 1) }
        }
    }

    func close() {
        socket.close()
    }
}

@Suite("The DNS forwarder")
struct DNSForwarderTests {
    private final class Scene {
        let simulation: Simulation
        let network: SimulatedNetwork
        let servers: [SimulatedHost]
        let queries = Log<String>()
        /// The ports from which the servers were asked.
        let ports = Log<UInt16>()
        let forwarder: DNSForwarder
        let client: Client

        init(_ simulation: Simulation) throws {
            self.simulation = simulation
            network = SimulatedNetwork(simulation)
            let (network, queries, ports) = (network, queries, ports)
            servers = (1...2).map { number in
                network.addHost(
                    "server\(number)", addresses: ["10.9.0.\(number)"], program: serve(UInt8(number), queries, ports))
            }
            simulation.advance(by: .milliseconds(1))
            forwarder = try DNSForwarder(
                at: Endpoint("127.0.0.1", port: 53),
                upstreams: [Endpoint("10.9.0.1", port: 53), Endpoint("10.9.0.2", port: 53)], on: simulation.loop)
            client = try Client(simulation.loop, forwarder.address)
        }

        func end() {
            client.close()
            forwarder.close()
        }

        func advance(_ duration: Duration) {
            simulation.advance(by: duration)
        }
    }

    @Test("an answer is kept for its time to live, and its age is subtracted")
    func cache() throws {
        try withSimulation { simulation in
            let scene = try Scene(simulation)
            scene.client.ask(1, "a")
            scene.advance(.milliseconds(100_500))
            scene.client.ask(2, "A")
            scene.advance(.seconds(1))
            #expect(scene.queries.text == "1" && scene.forwarder.hits == 1)
            #expect(DNSMessage(scene.client.answers[2] ?? [])?.timeToLive == 200)
            scene.advance(.seconds(200))
            scene.client.ask(3, "a")
            scene.advance(.seconds(1))
            #expect(scene.queries.text == "1 1" && DNSMessage(scene.client.answers[3] ?? [])?.timeToLive == 300)
            scene.end()
        }
    }

    @Test("the next server is asked after a pause if one is down, and at once if it refuses")
    func failover() throws {
        try withSimulation { simulation in
            let scene = try Scene(simulation)
            scene.servers[0].crash()
            scene.client.ask(1, "a", tries: 1)
            scene.advance(DNSForwarder.firstPause - .milliseconds(1))
            #expect(scene.client.answers.isEmpty)
            scene.advance(.milliseconds(5))
            #expect(scene.client.answers[1]?.last == 2)
            // From now on the server that has answered is asked first.
            scene.client.ask(2, "b", tries: 1)
            scene.advance(.milliseconds(5))
            #expect(scene.client.answers[2]?.last == 2)
            scene.servers[0].start()
            scene.advance(.milliseconds(1))
            scene.servers[1].send(.kill)
            scene.client.ask(3, "c", tries: 1)
            scene.advance(.milliseconds(5))
            #expect(scene.client.answers[3]?.last == 1)
            scene.end()
        }
    }

    @Test("without any server the client gets a failure after all tries, and equal questions are asked once")
    func failure() throws {
        try withSimulation { simulation in
            let scene = try Scene(simulation)
            for server in scene.servers { server.crash() }
            for number in 1...3 as ClosedRange<UInt16> { scene.client.ask(number, "a", tries: 1) }
            scene.advance(.seconds(12))
            #expect(scene.client.answers.isEmpty)
            scene.advance(.seconds(1))
            #expect(scene.client.answers.count == 3)
            #expect(scene.client.answers.values.allSatisfy { $0[3] & 0xf == 2 })
            scene.end()
        }
    }

    @Test("each query comes from a port of its own, which is closed with its answer")
    func ports() throws {
        try withSimulation { simulation in
            let scene = try Scene(simulation)
            for number in 1...20 as ClosedRange<UInt16> { scene.client.ask(number, "name\(number)") }
            scene.advance(.seconds(1))
            #expect(scene.client.answers.count == 20 && Set(scene.ports.entries).count == 20)
            // A later answer finds no socket, which the server's system learns.
            let probe = try DatagramSocket(
                peer: Endpoint("127.0.0.1", port: scene.ports.entries[0]), on: simulation.loop
            ) { _, _, _ in }
            var refusals = 0
            probe.errorHandler = { _, _, _ in refusals += 1 }
            probe.send("late")
            scene.advance(.seconds(1))
            #expect(refusals == 1)
            probe.close()
            scene.end()
        }
    }

    @Test("clients with one question are limited, and one that asks again waits once")
    func equalQuestions() throws {
        try withSimulation { simulation in
            let scene = try Scene(simulation)
            for server in scene.servers { server.crash() }
            let most = UInt16(DNSForwarder.mostClients)
            for number in 0..<most + 10 {
                for _ in 0..<3 { scene.client.ask(number, "a", tries: 1) }
            }
            scene.advance(.seconds(1))
            // The clients learn at once that there are too many.
            #expect(Set(scene.client.answers.keys) == Set(most..<most + 10))
            scene.advance(.seconds(20))
            #expect(scene.client.answers.count == Int(most) + 10)
            #expect(scene.client.received == 3 * 10 + Int(most))
            scene.end()
        }
    }

    @Test("each client gets its own spelling of the name")
    func spelling() throws {
        try withSimulation { simulation in
            let scene = try Scene(simulation)
            scene.client.ask(1, "Name")
            scene.client.ask(2, "nAME")
            scene.advance(.seconds(1))
            scene.client.ask(3, "namE")
            scene.advance(.seconds(1))
            #expect(scene.queries.text == "1")
            for (number, name) in [(1, "Name"), (2, "nAME"), (3, "namE")] as [(UInt16, String)] {
                let answer = try #require(scene.client.answers[number])
                #expect(Array(answer[13..<17]) == Array(name.utf8) && answer.last == 1)
            }
            scene.end()
        }
    }

    @Test("a client gets no more bytes than it has room for, and no options that it did not send")
    func room() throws {
        try withSimulation { simulation in
            let scene = try Scene(simulation)
            scene.client.send(message(1, "a").with(options(4096)))
            scene.advance(.seconds(1))
            let whole = try #require(scene.client.answers[1])
            #expect(whole.count > 3000 && whole[2] & 2 == 0 && whole.suffix(11) == options(4096)[...])
            // All from the cache.
            scene.client.send(message(2, "a"))
            scene.client.send(message(3, "a").with(options(1232)))
            scene.client.send(message(4, "a").with(options(100)))
            scene.advance(.seconds(1))
            #expect(scene.queries.text == "1" && scene.forwarder.hits == 3)
            // The client's own question, with the mark for more.
            var cut = message(2, "a")
            cut[2] = 0x83
            #expect(scene.client.answers[2] == cut)
            for number in [3, 4] as [UInt16] {
                cut[1] = UInt8(number)
                #expect(scene.client.answers[number] == cut.with(options(4096)))
            }
            scene.end()
        }
    }

    @Test("options are removed from an answer that is short enough")
    func removedOptions() throws {
        let answer = message(1, "a", answer: (300, [1, 2, 3, 4]))
        let query = try #require(DNSMessage(message(7, "A")))
        let bytes = try #require(DNSMessage(answer.with(options(4096)))).bytes(for: query.form)
        #expect(bytes == message(7, "A", answer: (300, [1, 2, 3, 4])))
    }

    @Test("a day with losses, duplicates, reordering and crashes: every question gets its answer", arguments: 1...3)
    func day(seed: UInt64) throws {
        try withSimulation(seed: seed) { simulation in
            let scene = try Scene(simulation)
            var link = NetworkLink()
            (link.lossRate, link.duplicationRate, link.reorderingRate) = (0.1, 0.1, 0.1)
            (link.latency, link.jitter) = (.milliseconds(20), .milliseconds(30))
            scene.network.link = link
            var random = SeededGenerator(seed: seed)
            for number in 0..<2_880 as Range<UInt16> {
                scene.client.ask(number, "name\(Int.random(in: 0..<200, using: &random))", tries: 60)
                scene.advance(.seconds(30))
                if number % 100 == 50 { scene.servers[Int(number / 100) % 2].crash() }
                if number % 100 == 90 { scene.servers[Int(number / 100) % 2].start() }
            }
            scene.advance(.seconds(60))
            #expect(scene.client.answers.count == 2_880, "seed \(seed)")
            #expect(scene.client.unexpected == 0 && scene.forwarder.hits > 50, "seed \(seed)")
            scene.end()
        }
    }

    @Test("bytes that are no message, random or cut off, are ignored", arguments: 0..<20)
    func nonsense(round: UInt64) throws {
        let seed = UInt64.random(in: 0...UInt64(UInt32.max)) << 8 | round
        var random = SeededGenerator(seed: seed)
        let whole = message(1, "some.name", answer: (300, [1, 2, 3, 4]))
        for _ in 0..<2_000 {
            var bytes = Array(whole.prefix(Int.random(in: 0...whole.count, using: &random)))
            for _ in 0..<Int.random(in: 0..<4, using: &random) where !bytes.isEmpty {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            if let message = DNSMessage(bytes) { #expect(message.aged(by: 10).bytes.count == bytes.count) }
        }
    }

    @Test("on the system's loopback a client gets its answer")
    func loopback() throws {
        let loop = RunLoop.current
        let server = try DatagramSocket(address: Endpoint("127.0.0.1", port: 0), on: loop) { socket, bytes, header in
            let query = bytes.withUnsafeBufferPointer { Array($0) }
            let number = UInt16(query[0]) << 8 | UInt16(query[1])
            socket.send(message(number, "a", answer: (300, [192, 0, 2, 7])), to: header.sender)
        }
        let forwarder = try DNSForwarder(
            at: Endpoint("127.0.0.1", port: 0), upstreams: [server.address], on: loop)
        let client = try Client(loop, forwarder.address)
        client.ask(1, "a")
        #expect(
            eventually {
                loop.run(in: .default, until: loop.now + .milliseconds(5))
                return client.answers[1] != nil
            })
        #expect(client.answers[1]?.last == 7)
        client.close()
        forwarder.close()
        server.close()
    }
}
