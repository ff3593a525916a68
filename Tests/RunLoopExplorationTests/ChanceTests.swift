import RunLoopExploration
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopUnix
import TestSupport
import Testing

private struct Violation: Error, CustomStringConvertible {
    let description: String
}

/// A client sends ten bytes to a server three times.
///
/// - Parameter check: receives the bytes and the time since they were written.
private func talk(
    _ simulation: Simulation, over link: NetworkLink, _ check: @escaping (Int, Duration) throws -> Void
) throws {
    let network = SimulatedNetwork(simulation)
    let (loop, address) = (simulation.loop, try Endpoint("10.1.0.1", port: 7))
    var violation: (any Error)?
    network.addHost("server", addresses: ["10.1.0.1"]) { loop in
        let listener = try Listener(address: address, on: loop)
        loop.task(name: "server") {
            guard let connection = try await listener.accept() else { return }
            while let bytes = try await connection.read() { try await connection.write(Array(bytes)) }
        }
    }
    loop.task(name: "client") {
        let connection = try await Connection.connect(to: address, on: loop)
        network.link = link
        for _ in 0..<3 {
            let start = loop.now
            try await connection.write([UInt8](repeating: 1, count: 10))
            var count = 0
            while count < 10, let bytes = try await connection.read() {
                do { try check(bytes.count, loop.now - start) } catch { violation = violation ?? error }
                count += bytes.count
            }
        }
        connection.close()
    }
    simulation.runUntilIdle()
    if let violation { throw violation }
}

private func explore(
    schedules: Int = 500, over link: NetworkLink = NetworkLink(), _ check: @escaping (Int, Duration) throws -> Void
) -> Exploration.Finding? {
    let result = Exploration(schedules: schedules).run { try talk($0, over: link, check) }
    guard case .failed(let finding) = result else { return nil }
    return finding
}

private func link(lossRate: Double = 0, jitter: Duration = .zero) -> NetworkLink {
    var link = NetworkLink()
    (link.latency, link.lossRate, link.jitter) = (.milliseconds(1), lossRate, jitter)
    return link
}

private func places(of finding: Exploration.Finding) -> [String] { finding.token.departures.map(\.place) }

/// Chance in a token, which keeps only the outcomes that the fault needs.
@Suite("Exploration of chance")
struct ChanceTests {
    @Test("bytes that come in pieces")
    func pieces() throws {
        func check(_ count: Int, _: Duration) throws {
            if count < 10 { throw Violation(description: "a piece of \(count) bytes") }
        }
        let finding = try #require(explore(check))
        #expect(finding.token.seed == 0 && finding.token.departures.count == 1, "\(finding)")
        let legal = ["test writes to server", "test sends to server", "server writes to test", "server sends to test"]
        #expect(places(of: finding).allSatisfy(legal.contains), "\(finding)")
        #expect(finding.picture.contains("s to "), "the picture says where")
        for _ in 0..<3 { #expect(replay(finding.token, check) == finding.fault) }
    }

    private func replay(
        _ token: ScheduleToken, over link: NetworkLink = NetworkLink(),
        _ check: @escaping (Int, Duration) throws -> Void
    ) -> Exploration.Fault? {
        Exploration().replay(token) { try talk($0, over: link, check) }
    }

    @Test("lost data is sent again and arrives later")
    func losses() throws {
        let finding = try #require(
            explore(over: link(lossRate: 0.1)) { _, time in
                if time > .seconds(1) { throw Violation(description: "an answer came after \(time)") }
            })
        let isShort = finding.token.departures.count <= 2
        #expect(isShort && places(of: finding).allSatisfy { $0.contains("loses on the way to") }, "\(finding)")
    }

    @Test("a link that loses all loses no less when it is explored")
    func allLost() {
        var times: [Duration] = []
        let fault = replay(ScheduleToken(seed: 0), over: link(lossRate: 1)) { _, time in times.append(time) }
        #expect(fault == nil && times.count == 3 && times.allSatisfy { $0 > .seconds(200) })
    }

    /// Two hosts send at different times to a third one, where their messages, two each, arrive at the same time.
    private func race(_ simulation: Simulation) throws {
        let network = SimulatedNetwork(simulation)
        let address = try Endpoint("10.1.0.9", port: 7)
        let received = Log<UInt8>()
        let receiver = network.addHost("receiver", addresses: ["10.1.0.9"]) { loop in
            // Not tasks, which have no order either.
            _ = try Listener(address: address, on: loop) { _, descriptor, _ in
                let connection = Connection(adopting: descriptor, on: loop) { _, bytes in
                    bytes.withUnsafeBufferPointer { for byte in $0 { received.append(byte) } }
                    return bytes.count
                }
                try? connection.start()
            }
        }
        for (number, latency) in [(1, 20), (2, 10)] {
            let host = network.addHost("sender \(number)", addresses: ["10.1.0.\(number)"]) { loop in
                loop.task {
                    let connection = try await Connection.connect(to: address, on: loop)
                    try await loop.clock.sleep(until: RunLoop.Instant(nanoseconds: 0) + .milliseconds(1000 - latency))
                    try await connection.write([UInt8(10 * number)])
                    try await loop.clock.sleep(for: .milliseconds(5))
                    try await connection.write([UInt8(10 * number + 1)])
                }
            }
            var link = NetworkLink()
            link.latency = .milliseconds(latency)
            network.setLink(link, between: host, and: receiver)
        }
        simulation.advance(by: .seconds(2))
        let order = received.entries
        for number in [10, 20] as [UInt8] where order.filter({ $0 / 10 == number / 10 }) != [number, number + 1] {
            throw Violation(description: "the bytes of one sender came as \(order)")
        }
        if order.first != 10 { throw Violation(description: "the second came first") }
    }

    @Test("packets of two hosts that arrive together come in any order, and packets of one host in the order sent")
    func arrivals() throws {
        let exploration = Exploration(limits: .init(reportsDeadlocks: false, reportsLeaks: false))
        guard case .failed(let finding) = exploration.run({ try race($0) }) else {
            Issue.record("no other order was tried")
            return
        }
        #expect(finding.fault.description == "the second came first", "\(finding)")
        let departures = finding.token.departures.map { "\($0)" }
        let departure = try #require(departures.first)
        #expect(departures.count == 1 && departure.hasPrefix("sender 1 to receiver@"), "\(finding)")
        #expect(departure.hasSuffix(">sender 2 to receiver"), "\(finding)")
        #expect(finding.picture.contains("comes first ← instead of sender 1 to receiver"), "\(finding)")
    }

    @Test("a delay that varies")
    func jitter() throws {
        let finding = try #require(
            explore(over: link(jitter: .milliseconds(10))) { _, time in
                if time > .milliseconds(10) { throw Violation(description: "an answer came after \(time)") }
            })
        let isShort = finding.token.departures.count <= 2
        #expect(isShort && places(of: finding).allSatisfy { $0.contains("is delayed") }, "\(finding)")
    }

    @Test("an impossible choice counts as the usual one", arguments: [0, 11, Int.max])
    func impossible(value: Int) {
        let departure = ScheduleToken.Departure(
            place: "test sends to server", step: 0, instead: .possibility(value))
        let fault = replay(ScheduleToken(seed: 0, departures: [departure])) { count, _ in
            if count != 10 { throw Violation(description: "a piece of \(count) bytes") }
        }
        #expect(fault == nil)
    }
}
