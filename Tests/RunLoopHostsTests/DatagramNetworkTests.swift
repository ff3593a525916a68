import Glibc
import RunLoopCore
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
@_spi(Ports) import RunLoopUnix
import TestSupport
import Testing

/// A host that echoes datagrams on port 7.
@Sendable private func echoDatagrams(on loop: RunLoop) throws {
    _ = try DatagramSocket(address: Endpoint("0.0.0.0", port: 7), on: loop) { socket, bytes, header in
        socket.send(bytes, to: header.sender)
    }
}

/// A socket of the test, with its datagrams and errors.
private final class Caller {
    let socket: DatagramSocket
    private(set) var numbers: [Int] = []
    private(set) var errors: [String] = []

    init(_ loop: RunLoop, peer: Endpoint? = nil, options: DatagramSocket.Options = .init()) throws {
        weak var own: Caller?
        let receive: DatagramSocket.ReceiveHandler = { _, bytes, _ in
            own?.numbers.append(
                bytes.withUnsafeBufferPointer { Int(String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)) ?? -1 })
        }
        socket =
            try peer.map { try DatagramSocket(peer: $0, on: loop, options: options, receive: receive) }
            ?? DatagramSocket(address: Endpoint("0.0.0.0", port: 0), on: loop, options: options, receive: receive)
        own = self
        socket.errorHandler = { _, error, peer in
            own?.errors.append("\(peer.map { "\($0)" } ?? "unknown") \(error.errno)")
        }
    }
}

@Suite("Datagrams in a simulated network")
struct DatagramNetworkTests {
    private let server = "10.1.0.1"

    private func withCaller(
        seed: UInt64 = 1, isConnected: Bool = false, options: DatagramSocket.Options = .init(),
        _ body: (Simulation, SimulatedNetwork, SimulatedHost, Caller, Endpoint) throws -> Void
    ) throws {
        try withSimulation(seed: seed) { simulation in
            let network = SimulatedNetwork(simulation)
            let host = network.addHost("server", addresses: [server], program: echoDatagrams)
            simulation.advance(by: .milliseconds(1))
            let address = try Endpoint(server, port: 7)
            let caller = try Caller(simulation.loop, peer: isConnected ? address : nil, options: options)
            try body(simulation, network, host, caller, address)
            caller.socket.close()
        }
    }

    @Test("a datagram takes the latency of its link there and back")
    func latency() throws {
        try withCaller { simulation, network, host, caller, address in
            caller.socket.send("1", to: address)
            simulation.advance(by: .microseconds(999))
            #expect(caller.numbers.isEmpty)
            simulation.advance(by: .microseconds(1))
            #expect(caller.numbers == [1])
        }
    }

    @Test("datagrams are lost, doubled and reordered at the rates of the link, by the seed")
    func faults() throws {
        func run(_ change: (inout NetworkLink) -> Void) throws -> (numbers: [Int], trace: [String]) {
            var result: ([Int], [String]) = ([], [])
            try withCaller(seed: 7) { simulation, network, host, caller, address in
                var link = NetworkLink()
                change(&link)
                network.setLink(link, from: network.test, to: host)
                for number in 0..<1_000 {
                    caller.socket.send("\(number)", to: address)
                    simulation.advance(by: .milliseconds(1))
                }
                simulation.advance(by: .seconds(1))
                result = (caller.numbers, simulation.trace)
            }
            return result
        }
        #expect(try run { _ in }.numbers == Array(0..<1_000))
        let lossy = try run { $0.lossRate = 0.2 }
        #expect(lossy.numbers.count > 700 && lossy.numbers.count < 900 && lossy.numbers == lossy.numbers.sorted())
        let doubled = try run { $0.duplicationRate = 0.2 }
        #expect(doubled.numbers.count > 1_100 && doubled.numbers.count < 1_300)
        #expect(Set(doubled.numbers).count == 1_000)
        let reordered = try run { $0.reorderingRate = 0.2 }
        #expect(reordered.numbers.sorted() == Array(0..<1_000) && reordered.numbers != Array(0..<1_000))
        let jittery = try run { $0.jitter = .milliseconds(5) }
        #expect(jittery.numbers.sorted() == Array(0..<1_000) && jittery.numbers != Array(0..<1_000))
        for _ in 0..<2 { #expect(try run { $0.lossRate = 0.2 }.trace == lossy.trace) }
    }

    @Test("a refusal names the peer, whether the socket is connected or not", arguments: [false, true])
    func refusals(isConnected: Bool) throws {
        try withCaller(isConnected: isConnected) { simulation, network, host, caller, address in
            let nobody = address.with(port: 9)
            if isConnected { try caller.socket.connect(to: nobody) }
            caller.socket.send("1", to: isConnected ? nil : nobody)
            simulation.advance(by: .microseconds(999))
            #expect(caller.errors.isEmpty)
            simulation.advance(by: .milliseconds(1))
            #expect(caller.errors == ["\(nobody) \(ECONNREFUSED)"])
            if isConnected { try caller.socket.connect(to: address) }
            caller.socket.send("2", to: address)
            simulation.advance(by: .milliseconds(2))
            #expect(caller.numbers == [2])
        }
    }

    @Test("datagrams over a cut link or to a host that is down are lost without an error")
    func silence() throws {
        try withCaller { simulation, network, host, caller, address in
            network.cut(from: network.test, to: host)
            caller.socket.send("1", to: address)
            simulation.advance(by: .seconds(1))
            network.heal()
            host.crash()
            caller.socket.send("2", to: address)
            simulation.advance(by: .seconds(1))
            #expect(caller.numbers.isEmpty && caller.errors.isEmpty)
            host.start()
            simulation.advance(by: .seconds(1))
            caller.socket.send("3", to: address)
            simulation.advance(by: .seconds(1))
            #expect(caller.numbers == [3])
            // There is no way to an unassigned address.
            caller.socket.send("4", to: try Endpoint("192.0.2.1", port: 7))
            #expect(caller.errors == ["192.0.2.1:7 \(ENETUNREACH)"])
        }
    }

    @Test("a datagram longer than a packet goes in pieces, or fails, as the socket says", arguments: [false, true])
    func packets(allowsFragments: Bool) throws {
        var options = DatagramSocket.Options()
        options.allowsFragments = allowsFragments
        try withCaller(options: options) { simulation, network, host, caller, address in
            var link = NetworkLink()
            link.mtu = 1_500
            network.setLink(link, from: network.test, to: host)
            for (number, count) in [1_472, 1_473, 65_507, 65_508].enumerated() {
                caller.socket.send(Array("\(number)".utf8) + [UInt8](repeating: 0, count: count - 1), to: address)
            }
            simulation.advance(by: .seconds(1))
            #expect(caller.numbers == (allowsFragments ? [0, 1, 2] : [0]))
            let failure = "\(address) \(EMSGSIZE)"
            #expect(caller.errors == [String](repeating: failure, count: allowsFragments ? 1 : 3))
            // The more pieces, the greater the loss.
            link.lossRate = 0.05
            network.setLink(link, from: network.test, to: host)
            guard allowsFragments else { return }
            for _ in 0..<200 { caller.socket.send([UInt8](repeating: 0, count: 60_000), to: address) }
            simulation.advance(by: .seconds(1))
            #expect(caller.numbers.count < 3 + 100)
        }
    }

    @Test("a receiver that does not read loses datagrams without an error for the sender")
    func overflow() throws {
        try withCaller { simulation, network, host, caller, address in
            caller.socket.pauseReceiving()
            for number in 0..<2_000 { caller.socket.send("\(number)", to: address) }
            simulation.advance(by: .seconds(1))
            caller.socket.resumeReceiving()
            simulation.advance(by: .seconds(1))
            #expect(caller.numbers.count > 100 && caller.numbers.count < 1_000 && caller.errors.isEmpty)
        }
    }

    @Test("groups and broadcasts reach the members, and the sender needs leave to broadcast")
    func groups() throws {
        try withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            let group = try Endpoint("239.0.0.1", port: 5_353)
            let counts = Log<String>()
            for name in ["one", "two", "three"] {
                network.addHost(name) { loop in
                    let socket = try DatagramSocket(address: Endpoint("0.0.0.0", port: 5_353), on: loop) { _, _, _ in
                        counts(name)
                    }
                    if name != "three" { try socket.join(group) }
                }
            }
            simulation.advance(by: .milliseconds(1))
            let all = try Endpoint("255.255.255.255", port: 5_353)
            let caller = try Caller(simulation.loop)
            caller.socket.send("1", to: group)
            simulation.advance(by: .milliseconds(10))
            #expect(counts.entries.sorted() == ["one", "two"])
            caller.socket.send("2", to: all)
            #expect(caller.errors == ["\(all) \(EACCES)"])
            var options = DatagramSocket.Options()
            options.allowsBroadcast = true
            let loud = try Caller(simulation.loop, options: options)
            loud.socket.send("3", to: all)
            simulation.advance(by: .milliseconds(10))
            #expect(counts.entries.sorted() == ["one", "one", "three", "two", "two"])
            for socket in [caller.socket, loud.socket] { socket.close() }
        }
    }

    @Test("an IPv6 socket has IPv4 peers as well, and answers them")
    func dualStack() throws {
        try withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            let senders = Log<String>()
            network.addHost("server", addresses: [server, "fd00::9"]) { loop in
                _ = try DatagramSocket(address: Endpoint("::", port: 7), on: loop) { socket, bytes, header in
                    senders("\(header.sender)")
                    socket.send(bytes, to: header.sender)
                }
            }
            simulation.advance(by: .milliseconds(1))
            let caller = try Caller(simulation.loop)
            caller.socket.send("4", to: try Endpoint(server, port: 7))
            simulation.advance(by: .milliseconds(10))
            #expect(caller.numbers == [4])
            #expect(senders.entries.map { $0.hasPrefix("[::ffff:10.") } == [true])
            caller.socket.close()
        }
    }

    @Test("an answer from the address that was asked reaches a connected client, and no other answer does")
    func askedAddress() throws {
        try withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            let asked = Log<String>()
            network.addHost("server", addresses: [server, "10.1.0.2"]) { loop in
                _ = try DatagramSocket(address: Endpoint("0.0.0.0", port: 7), on: loop) { socket, bytes, header in
                    asked("\(header.localAddress!) \(header.typeOfService)")
                    socket.send("1", to: header.sender)
                    socket.send("2", to: header.sender, from: header.localAddress)
                    socket.send("3", to: header.sender, from: try! Endpoint("10.1.0.3", port: 0))
                }
            }
            simulation.advance(by: .milliseconds(1))
            let caller = try Caller(simulation.loop, peer: Endpoint("10.1.0.2", port: 7))
            caller.socket.send("question", typeOfService: 2)
            simulation.advance(by: .milliseconds(10))
            #expect(asked.entries == ["10.1.0.2:7 2"] && caller.numbers == [2])
            caller.socket.close()
        }
    }
}
