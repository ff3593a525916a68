import RunLoopCore
import RunLoopKit
import RunLoopSimulation
import RunLoopUnix
import TestSupport
import Testing

@testable import Links
@testable import RunLoopHosts

@Suite("Links as real ones")
struct LinkTests {
    @Test(
        "conversations have the results and errors that they have over a real link, which `make links` compares",
        arguments: Conversation.all.map(\.name))
    func conversations(name: String) throws {
        let conversation = try #require(Conversation.named(name))
        for seed in 1...3 as ClosedRange<UInt64> {
            let events = conversation.simulated(seed: seed)
            for side in Side.Name.allCases {
                #expect(events.filter { $0.side == side }.map(\.text) == conversation.expected[side], "seed \(seed)")
            }
        }
    }

    /// Returns the time, in milliseconds, when the last of some clients has all bytes of a server that sends pieces of
    /// these sizes.
    private func end(over link: NetworkLink, _ sizes: [Int], clients: Int = 1) -> Int {
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            network.link = link
            network.addHost("server", addresses: ["10.1.0.1"]) { loop in
                _ = try Listener(address: Endpoint("0.0.0.0", port: 7), on: loop) { _, descriptor, _ in
                    let connection = Connection(adopting: descriptor, on: loop) { _, bytes in bytes.count }
                    try? connection.start()
                    for size in sizes { connection.write([UInt8](repeating: 1, count: size)) }
                }
            }
            var (rest, end) = (sizes.reduce(0, +) * clients, RunLoop.Instant.distantPast)
            for _ in 1...clients {
                Connection.connect(host: "10.1.0.1", port: 7, on: simulation.loop) { _, bytes in
                    (rest, end) = (rest - bytes.count, simulation.now)
                    return bytes.count
                } completion: {
                    try? $0.get().start()
                }
            }
            simulation.advance(by: .seconds(60))
            #expect(rest == 0)
            return Int(end.nanoseconds / 1_000_000)
        }
    }

    @Test("ten packets go at once, and twice as many after each round trip")
    func window() {
        var link = NetworkLink()
        link.latency = .milliseconds(50)
        #expect(end(over: link, [14_480]) == 200)
        #expect(end(over: link, [14_480 * 3]) == 300)
        #expect(end(over: link, [14_480 * 7]) == 400)
    }

    @Test("small pieces, and connections, share the bandwidth of their link")
    func bandwidth() {
        var link = NetworkLink()
        link.bandwidth = 100_000
        let sizes = Array(repeating: 1_000, count: 50)
        #expect((500...505).contains(end(over: link, sizes)))
        #expect((1_000...1_005).contains(end(over: link, sizes, clients: 2)))
    }

    @Test("a reader that rests keeps no more than 64 KiB, however far the sender's window is open")
    func rest() {
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            network.link.latency = .milliseconds(10)
            network.addHost("server", addresses: ["10.1.0.1"]) { loop in
                _ = try Listener(address: Endpoint("0.0.0.0", port: 7), on: loop) { _, descriptor, _ in
                    let connection = Connection(adopting: descriptor, on: loop) { _, bytes in bytes.count }
                    connection.pauseReading()
                    try? connection.start()
                }
            }
            var pending = 0
            Connection.connect(host: "10.1.0.1", port: 7, on: simulation.loop) { _, bytes in
                bytes.count
            } completion: { result in
                guard let connection = try? result.get() else { return }
                try? connection.start()
                connection.write([UInt8](repeating: 1, count: 1_000_000))
                simulation.loop.perform(afterDelay: .seconds(50)) { pending = connection.pendingOutput }
            }
            simulation.advance(by: .seconds(60))
            // The sender's own buffer has room for twice its window, which is at most the bytes that the reader has not
            // taken.
            #expect(pending >= 1_000_000 - 64 * 1024 - 2 * (64 * 1024 + 14_480) && pending <= 1_000_000 - 128 * 1024)
        }
    }

    @Test("a packet lost among others delays them by a round trip; one that is alone by 200 ms")
    func losses() {
        var link = NetworkLink()
        link.latency = .milliseconds(10)
        link.lossRate = 0.2
        let window = CongestionWindow.packet * 10
        withSimulation(seed: 3) { simulation in
            let network = SimulatedNetwork(simulation)
            let other = network.addHost("other") { _ in }
            network.setLink(link, between: network.test, and: other)
            let path = network.test.machine.path(to: other.machine)
            for _ in 1...100 {
                let alone = network.network.delay(of: 100, on: path)
                #expect(alone.time == link.latency || alone.time >= .milliseconds(210))
                let among = network.network.delay(of: window, inPackets: 10, amid: 10, on: path)
                switch among.loss {
                case .none: #expect(among.time == link.latency)
                case .recovered: #expect(among.time == link.latency * 3)
                case .timedOut: #expect(among.time >= .milliseconds(610))
                }
            }
        }
    }
}
