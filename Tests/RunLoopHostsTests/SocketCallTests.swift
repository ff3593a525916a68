import Glibc
@_spi(Ports) import RunLoopCore
@_spi(Ports) import RunLoopKit
@_spi(Ports) import RunLoopSimulation
@_spi(Ports) import RunLoopUnix
import TestSupport
import Testing

@testable import RunLoopHosts

/// Sockets of one system and the events on them, as text.
private final class SocketBench {
    let system: any SystemCalls
    /// Waits until packets in flight have arrived.
    let settle: () -> Void
    let readiness: (Int32) -> DescriptorEvents
    let listener: Int32
    let address: Endpoint
    private(set) var sockets: [Int32] = []

    init(_ system: any SystemCalls, readiness: @escaping (Int32) -> DescriptorEvents, settle: @escaping () -> Void) {
        (self.system, self.readiness, self.settle) = (system, readiness, settle)
        listener = system.socket(AF_INET)
        system.setOption(listener, SOL_SOCKET, SO_REUSEADDR, 1)
        // Otherwise small pieces would wait until the previous one is acknowledged. Connections inherit the option.
        system.setOption(listener, Int32(IPPROTO_TCP), TCP_NODELAY, 1)
        #expect(system.bind(listener, to: try! Endpoint("127.0.0.1", port: 0)) == 0)
        #expect(system.listen(listener, backlog: 2) == 0)
        address = system.localAddress(of: listener)
    }

    func end() {
        for socket in sockets where socket >= 0 { system.close(socket) }
        system.close(listener)
    }

    private func result(_ value: Int) -> String { value >= 0 ? "\(value)" : String(cString: strerror(errno)) }

    func connect(to address: Endpoint) -> String {
        let socket = system.socket(AF_INET)
        sockets.append(socket)
        system.setOption(socket, Int32(IPPROTO_TCP), TCP_NODELAY, 1)
        let status = system.connect(socket, to: address)
        // The system's loopback connects at once.
        guard status == 0 || errno == EINPROGRESS else { return result(-1) }
        settle()
        let reason = system.option(socket, SOL_SOCKET, SO_ERROR)!
        return reason == 0 ? "connected" : String(cString: strerror(reason))
    }

    func accept() -> String {
        var peer = Endpoint()
        let socket = system.accept(listener, peer: &peer)
        guard socket >= 0 else { return result(-1) }
        sockets.append(socket)
        return "accepted \(sockets.firstIndex { $0 >= 0 && "\(system.localAddress(of: $0))" == "\(peer)" } ?? -1)"
    }

    func send(_ count: Int, on index: Int) -> String {
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
        var sent = 0
        while sent < count {
            let moved = bytes[sent...].withUnsafeBytes { system.send(sockets[index], $0) }
            guard moved > 0 else { return "sent \(sent), then \(result(moved))" }
            sent += moved
        }
        return "sent \(sent)"
    }

    func receive(on index: Int) -> String {
        var received = 0
        var room = [UInt8](repeating: 0, count: 100_000)
        while true {
            let moved = room.withUnsafeMutableBytes { system.read(sockets[index], into: $0) }
            guard moved > 0 else { return "received \(received), then \(result(moved))" }
            received += moved
            // The peer learns of the larger window.
            settle()
        }
    }

    func endWriting(_ index: Int) -> String {
        system.endWriting(sockets[index])
        return ""
    }

    func close(_ index: Int) -> String {
        system.close(sockets[index])
        sockets[index] = -1
        return ""
    }
}

@Suite("Simulated sockets, call by call")
struct SocketCallTests {
    /// Returns the readiness of the real descriptor.
    static func poll(_ descriptor: Int32) -> DescriptorEvents {
        var request = pollfd(fd: descriptor, events: Int16(POLLIN | POLLOUT), revents: 0)
        guard Glibc.poll(&request, 1, 0) > 0 else { return [] }
        let failed = Int32(request.revents) & (POLLHUP | POLLERR) != 0
        var events: DescriptorEvents = []
        if failed || Int32(request.revents) & POLLIN != 0 { events.insert(.readable) }
        if failed || Int32(request.revents) & POLLOUT != 0 { events.insert(.writable) }
        return events
    }

    @Test("random calls have the results that they have on the system's loopback", arguments: 0..<40)
    func random(round: UInt64) {
        let seed = UInt64.random(in: 0...UInt64(UInt32.max)) << 8 | round
        withSimulation(seed: seed) { simulation in
            let network = SimulatedNetwork(simulation)
            let fence = LoopbackFence()
            let benches = [
                SocketBench(WorldSystem.real, readiness: Self.poll) { fence.wait() },
                SocketBench(network.system, readiness: { network.system.readiness(of: $0) }) {
                    simulation.advance(by: .seconds(1))
                },
            ]
            defer { for bench in benches { bench.end() } }
            var random = SeededGenerator(seed: seed)
            var log: [String] = []
            // The open sockets.
            var open: [Int] = []
            var waiting = 0
            /// - Returns: `true` if both systems answered the same.
            func both(_ words: String, _ body: (SocketBench) -> String) -> Bool {
                let results = benches.map { bench in
                    let result = body(bench)
                    bench.settle()
                    let ready = open.map { "\($0) \(bench.readiness(bench.sockets[$0]))" }
                    return "\(result) [\(ready.joined(separator: "; "))] \(bench.readiness(bench.listener))"
                }
                log.append("\(words): \(results[0])")
                #expect(results[0] == results[1], "seed \(seed): \(log.suffix(12).joined(separator: "\n"))")
                return results[0] == results[1]
            }
            for _ in 0..<60 {
                let before = benches[0].sockets.count
                let index = open.randomElement(using: &random)
                let isSame: Bool
                switch (Int.random(in: 0..<10, using: &random), index) {
                case (0..<2, _), (_, nil):
                    // Peers beyond the listener's backlog are refused only after seconds.
                    guard waiting < 3 else { continue }
                    waiting += 1
                    isSame = both("connect") { $0.connect(to: $0.address) }
                    if isSame { open.append(before) }
                case (2..<4, _):
                    isSame = both("accept") { $0.accept() }
                    waiting = max(0, waiting - 1)
                    if benches[0].sockets.count > before { open.append(before) }
                case (4..<6, let index?):
                    let count = Int.random(in: 1...5_000, using: &random)
                    isSame = both("send \(count) on \(index)") { $0.send(count, on: index) }
                case (6..<8, let index?): isSame = both("receive on \(index)") { $0.receive(on: index) }
                case (8, let index?): isSame = both("end writing on \(index)") { $0.endWriting(index) }
                case (_, let index?):
                    open.removeAll { $0 == index }
                    isSame = both("close \(index)") { $0.close(index) }
                }
                guard isSame else { return }
            }
        }
    }

    @Test("a removed path leads to nothing, and bound again to the new listener alone")
    func removedPath() throws {
        let directory = TemporaryDirectory()
        try withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            let both: [any SystemCalls] = [WorldSystem.real, network.system]
            for (system, path) in zip(both, [directory.path + "/s", "/s"]) {
                let address = try Endpoint(path: path)
                func listen() -> Int32 {
                    let listener = system.socket(AF_UNIX)
                    #expect(system.bind(listener, to: address) == 0 && system.listen(listener, backlog: 20) == 0)
                    return listener
                }
                let old = listen()
                #expect(system.removeFile(at: path) == 0)
                let early = system.socket(AF_UNIX)
                #expect(system.connect(early, to: address) < 0 && errno == ENOENT)
                let new = listen()
                let clients = (0..<10).map { _ in system.socket(AF_UNIX) }
                for client in clients { #expect(system.connect(client, to: address) == 0) }
                simulation.advance(by: .milliseconds(1))
                var peer = Endpoint.unnamed
                #expect(system.accept(old, peer: &peer) < 0 && errno == EAGAIN)
                let accepted = clients.map { _ in system.accept(new, peer: &peer) }
                #expect(accepted.allSatisfy { $0 >= 0 })
                for descriptor in [old, new, early] + clients + accepted { system.close(descriptor) }
            }
        }
    }

    @Test("a simulated process can use descriptors of the real system beside its own")
    func descriptorsOfTheSystem() throws {
        try withSimulation { simulation in
            let system = SimulatedNetwork(simulation).system
            let real = WorldSystem.real
            let (listener, client) = (real.socket(AF_INET), real.socket(AF_INET))
            defer { for descriptor in [listener, client] { system.close(descriptor) } }
            #expect(system.isSocket(listener) && system.option(listener, SOL_SOCKET, SO_TYPE) == 1)
            let isSimulated = try system.check(listener)
            let anyPort = try Endpoint("127.0.0.1", port: 0)
            #expect(!isSimulated && system.bind(listener, to: anyPort) == 0)
            #expect(system.listen(listener, backlog: 1) == 0)
            let address = system.localAddress(of: listener)
            #expect(address.port != 0 && "\(address)" == "\(real.localAddress(of: listener))")
            _ = system.connect(client, to: address)
            var peer = Endpoint.unnamed
            var server: Int32 = -1
            let isAccepted = eventually {
                server = system.accept(listener, peer: &peer)
                return server >= 0
            }
            #expect(isAccepted && "\(peer)" == "\(real.localAddress(of: client))")
            let copy = system.duplicate(server)
            system.close(server)
            var bytes: [UInt8] = [1, 2, 3]
            #expect(bytes.withUnsafeBytes { system.send(client, $0) } == 3)
            #expect(eventually { system.hasInput(copy) })
            system.endWriting(client)
            #expect(bytes.withUnsafeMutableBytes { system.read(copy, into: $0) } == 3)
            #expect(eventually { bytes.withUnsafeMutableBytes { system.read(copy, into: $0) } == 0 })
            system.resetWhenClosed(copy)
            system.close(copy)
            #expect(eventually { bytes.withUnsafeBytes { system.write(client, $0) } < 0 })
        }
    }
}
