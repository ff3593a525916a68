import RunLoopCore
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopUnix
import TestSupport
import Testing

@Suite("Servers on simulated hosts")
struct ServerTests {
    @Test(
        "a daemon that is stopped answers requests under way, on one loop and on a group, by handlers and by tasks",
        arguments: [false, true], [false, true])
    func stop(isGroup: Bool, isTask: Bool) {
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            network.link.latency = .milliseconds(200)
            let host = network.addDaemon("server", addresses: ["10.1.0.1"]) { loop in
                let daemon = Daemon(loop: loop, manager: try ServiceManager())
                try daemon.handleSignals()
                let handlers: @Sendable (Connection, Endpoint) -> Void = { connection, _ in
                    connection.receiveHandler = Framing.lines { connection, line in
                        line.withUnsafeBufferPointer { connection.write("\(String(decoding: $0, as: UTF8.self))\n") }
                    }
                }
                let task: nonisolated(nonsending) @Sendable (Connection, Endpoint) async throws -> Void = {
                    connection, _ in
                    for try await line in connection.lines() { try await connection.write("\(line)\n") }
                }
                let group = try isGroup ? LoopGroup(count: 2) : nil
                let server =
                    if let group {
                        try isTask ? Server(on: group, serve: task) : Server(on: group, serve: handlers)
                    } else {
                        isTask ? Server(on: loop, serve: task) : Server(on: loop, serve: handlers)
                    }
                try server.listen(on: Endpoint("0.0.0.0", port: 7))
                daemon.add(server)
                daemon.onStop(.exit) {
                    group?.stop()
                    group?.join()
                }
                return daemon.run()
            }
            var answers: [String] = []
            var ends = 0
            for number in 0..<4 {
                Connection.connect(
                    to: try! Endpoint("10.1.0.1", port: 7), on: simulation.loop,
                    receive: Framing.lines { _, line in
                        answers.append(line.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) })
                    }
                ) { result in
                    do {
                        let connection = try result.get()
                        connection.closeHandler = { if $1 == .ended { ends += 1 } }
                        try connection.start()
                        simulation.loop.perform(afterDelay: .milliseconds(300)) { connection.write("\(number)\n") }
                    } catch { Issue.record("\(error)") }
                }
            }
            // The connections stand after 600 ms, and the requests are under way from 700 to 900 ms.
            simulation.advance(by: .milliseconds(800))
            host.send(.terminate)
            #expect(simulation.runUntilIdle() == .done)
            #expect(answers.sorted() == ["0", "1", "2", "3"] && ends == 4, "\(answers), \(ends)")
            #expect(host.ending.map { "\($0)" } == "exited(0)")
            #expect(simulation.now < .init(nanoseconds: 2_000_000_000))
        }
    }
}
