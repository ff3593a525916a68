import RunLoopExploration
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopUnix
import Testing

private struct Violation: Error, CustomStringConvertible {
    let description: String
}

/// A client says ten bytes three times to a server.
///
/// - Parameter check: gets what comes, with the time since it was written.
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

/// What chance does is in the token, and nothing of it that the fault does not need.
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

    @Test("what is lost is sent again and comes later")
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

    @Test("a delay that varies")
    func jitter() throws {
        let finding = try #require(
            explore(over: link(jitter: .milliseconds(10))) { _, time in
                if time > .milliseconds(10) { throw Violation(description: "an answer came after \(time)") }
            })
        let isShort = finding.token.departures.count <= 2
        #expect(isShort && places(of: finding).allSatisfy { $0.contains("is delayed") }, "\(finding)")
    }

    @Test("what cannot be is what usually is", arguments: [0, 11, Int.max])
    func impossible(value: Int) {
        let departure = ScheduleToken.Departure(
            place: "test sends to server", step: 0, instead: .possibility(value))
        let fault = replay(ScheduleToken(seed: 0, departures: [departure])) { count, _ in
            if count != 10 { throw Violation(description: "a piece of \(count) bytes") }
        }
        #expect(fault == nil)
    }
}
