import RunLoopCore
import RunLoopHosts
import RunLoopKit
import RunLoopRecording
import RunLoopSimulation
import RunLoopUnix
import TestSupport
import Testing

/// A daemon that answers each line with its number and a word.
private func answer(_ word: String, on loop: RunLoop, _ address: Endpoint) throws -> Listener {
    try Listener(address: address, on: loop) { _, descriptor, _ in
        var count = 0
        let connection = Connection(
            adopting: descriptor, on: loop,
            receive: Framing.lines { connection, line in
                count += 1
                connection.write("\(word) \(count): \(line.count) bytes\n")
            })
        try? connection.start()
    }
}

/// Records a daemon with three clients, each of which sends lines one after the other, and waits for each answer.
private func record(_ options: RecordingOptions = .withOutput) throws -> RecordPath {
    let path = RecordPath()
    var visitors: LoopThread?
    try withRecording(to: path.path, options: options) { loop in
        let home = loop.remote
        let listener = try answer("line", on: loop, Endpoint("127.0.0.1", port: 0))
        let address = listener.address
        visitors = LoopThread(name: "visitors", in: RunLoop.realWorld) { loop in
            var left = 3
            for number in 1...3 {
                var lines = 0
                Connection.connect(
                    to: address, on: loop,
                    receive: Framing.lines { connection, _ in
                        lines += 1
                        if lines == 5 { return connection.finish() }
                        connection.write(String(repeating: "x", count: number * lines) + "\n")
                    }
                ) { result in
                    guard let connection = try? result.get() else { return }
                    connection.closeHandler = { _, _ in
                        left -= 1
                        if left == 0 { home.stop() }
                    }
                    try? connection.start()
                    connection.write("hello\n")
                }
            }
        }
        loop.run(in: .default)
        listener.close()
    }
    visitors?.join()
    return path
}

extension RecordingOptions {
    fileprivate static var withOutput: RecordingOptions {
        var options = RecordingOptions()
        options.keepsOutput = true
        return options
    }
}

private func read(_ path: RecordPath) throws -> Record {
    try withExtendedLifetime(path) { try Record(contentsOf: path.path) }
}

/// Has the clients of a record talk to a daemon on a simulated host.
private func play(
    _ record: Record, daemon: @escaping @Sendable (RunLoop, Endpoint) throws -> Void
) -> [RecordedClient.Outcome] {
    withSimulation { simulation in
        let network = SimulatedNetwork(simulation)
        network.addHost("server", addresses: ["10.1.0.1"]) { try daemon($0, Endpoint("0.0.0.0", port: 7)) }
        var outcomes: [Int: RecordedClient.Outcome] = [:]
        let loop = simulation.loop
        for (number, client) in record.clients.enumerated() {
            client.play(to: try! Endpoint("10.1.0.1", port: 7), on: loop) { outcomes[number] = $0 }
        }
        simulation.advance(by: .seconds(60))
        return outcomes.sorted { $0.key < $1.key }.map(\.value)
    }
}

@Suite struct ClientTests {
    @Test func `a record shows its threads, events and clients`() throws {
        let record = try read(record())
        #expect(record.threads == [0: "main"])
        #expect(record.foreignCalls == 0)
        #expect(record.arguments == CommandLine.arguments)
        let events = Array(record.events(ofThread: 0))
        #expect(events.map(\.number) == (0..<UInt64(events.count)).map { $0 })
        #expect(events.last?.text == "nothing more: the program has ended")
        #expect(events.contains { $0.text.hasPrefix("bind(") && $0.text.hasSuffix("\"127.0.0.1:0\")") })
        #expect(record.description.contains("thread 0, main: \(events.count) events"))
        #expect(record.clients.count == 3)
        for client in record.clients {
            let sent = client.steps.compactMap { if case .send(let bytes) = $0.action { bytes } else { nil } }
            #expect(sent.first.map { String(decoding: $0, as: UTF8.self) } == "hello\n")
            #expect(sent.count == 5)
            #expect(client.steps.last?.action == .finish)
            #expect(client.answer.map { String(decoding: $0.prefix(16), as: UTF8.self) } == "line 1: 5 bytes\n")
            #expect(client.answer?.count == client.answerCount)
        }
    }

    @Test func `recorded clients talk to a daemon on a simulated host`() throws {
        let record = try read(record())
        let same = play(record) { _ = try answer("line", on: $0, $1) }
        #expect(same.count == 3)
        for (outcome, client) in zip(same, record.clients) {
            #expect(outcome.answer == client.answer)
            #expect(outcome.difference == nil)
        }
        // A changed daemon, whose answers are as long.
        let other = play(record) { _ = try answer("Line", on: $0, $1) }
        #expect(other.map(\.difference) == [0, 0, 0])
        // One whose answers are shorter: the clients wait, and go on.
        let short = play(record) { _ = try answer("l", on: $0, $1) }
        #expect(short.map(\.difference) == [1, 1, 1])
        // One that answers nothing.
        let none = play(record) { loop, address in
            _ = try Listener(address: address, on: loop) { _, descriptor, _ in
                try? Connection(adopting: descriptor, on: loop) { $1.count }.start()
            }
        }
        #expect(none.map(\.difference) == [0, 0, 0])
        // And none at all.
        let gone = play(record) { _, _ in }
        #expect(gone.map(\.reason).allSatisfy { $0 == nil })
    }
}
