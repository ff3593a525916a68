@_spi(Ports) import RunLoopCore
import RunLoopExploration
import RunLoopHosts
@_spi(Ports) import RunLoopKit
import RunLoopSimulation
import RunLoopUnix
import TestSupport
import Testing

@testable import RunLoopRecording

/// Makes a daemon that answers each line with its number and a word.
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

/// Records a daemon with three clients, each of which sends one line after another, and waits for each answer.
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

/// Lets the clients of a record talk to a daemon on a simulated host.
private func play(
    _ record: Record, daemon: @escaping @Sendable (RunLoop, Endpoint) throws -> Void
) -> [RecordedClient.Outcome] {
    withSimulation { play(record, in: $0, daemon: daemon) }
}

private func play(
    _ record: Record, in simulation: Simulation, timeScale: Double = 1,
    daemon: @escaping @Sendable (RunLoop, Endpoint) throws -> Void
) -> [RecordedClient.Outcome] {
    let network = SimulatedNetwork(simulation)
    network.addHost("server", addresses: ["10.1.0.1"]) { try daemon($0, Endpoint("0.0.0.0", port: 7)) }
    var outcomes: [Int: RecordedClient.Outcome] = [:]
    let loop = simulation.loop
    for (number, client) in record.clients.enumerated() {
        client.play(to: try! Endpoint("10.1.0.1", port: 7), on: loop, timeScale: timeScale) { outcomes[number] = $0 }
    }
    simulation.advance(by: .seconds(60))
    return outcomes.sorted { $0.key < $1.key }.map(\.value)
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
        // A daemon with shorter answers: the clients wait for a second, and continue.
        let short = play(record) { _ = try answer("l", on: $0, $1) }
        #expect(short.map(\.difference) == [1, 1, 1])
        // A daemon that does not answer.
        let none = play(record) { loop, address in
            _ = try Listener(address: address, on: loop) { _, descriptor, _ in
                try? Connection(adopting: descriptor, on: loop) { $1.count }.start()
            }
        }
        #expect(none.map(\.difference) == [0, 0, 0])
        // No daemon at all.
        let gone = play(record) { _, _ in }
        #expect(gone.map(\.reason).allSatisfy { $0 == nil })
    }

    @Test func `a daemon that answers otherwise gives a trace with a picture, and both lines in its fault`() throws {
        let record = try read(record())
        func trace(_ word: String) -> SimulationTrace {
            Exploration(limits: .init(reportsDeadlocks: false)).trace(ScheduleToken(seed: 0)) { simulation in
                for outcome in play(record, in: simulation, daemon: { _ = try answer(word, on: $0, $1) }) {
                    try outcome.check()
                }
            }
        }
        #expect(trace("line").fault == nil)
        let changed = trace("Line")
        let peer = record.clients[0].peer
        let words = "differs from byte 0 on: \"Line 1: 5 bytes\\nLine 2"
        #expect(changed.fault?.description.hasPrefix("the answer to \(peer) \(words)") == true, "\(changed.fault!)")
        #expect(changed.fault?.description.contains("in place of \"line 1: 5 bytes\\n") == true, "\(changed.fault!)")
        #expect(
            changed.picture.contains("17 bytes \"Line 5: 12 bytes\\n\"") && changed.html.contains("<svg"),
            "\(changed.picture)")
    }

    @Test func `the difference of answers is described by the lines that differ`() {
        func words(_ recorded: String, _ answer: String, at place: Int) -> String {
            let difference = RecordedClient.AnswerError(
                peer: try! Endpoint("127.0.0.1", port: 1), place: place, recorded: Array(recorded.utf8),
                answer: Array(answer.utf8))
            return "\(difference)"
        }
        #expect(words("a\nbc\n", "a\nbd\n", at: 3).hasSuffix(#"from byte 3 on: "bd\n" in place of "bc\n""#))
        #expect(words("a\n", "", at: 0).hasSuffix(#"on: nothing in place of "a\n""#))
        #expect(words("a\n", "a\nb", at: 2).hasSuffix(#"on: "b" in place of the end"#))
        let long = String(repeating: "x", count: 1000)
        #expect(words(long + "a", long + "b", at: 1000).count < 140)
    }

    @Test func `a recorded incident is the usual schedule of an exploration, which tries departures from it`() throws {
        let path = RecordPath()
        var buyers: LoopThread?
        try withRecording(to: path.path, options: .withOutput) { loop in
            let home = loop.remote
            let shop = try shop(on: loop, Endpoint("127.0.0.1", port: 0), sell: sellAtOnce)
            buyers = LoopThread(name: "buyers", in: RunLoop.realWorld) { [address = shop.address] loop in
                buy(2, from: address, on: loop) { home.stop() }
            }
            loop.run(in: .default)
            shop.close()
        }
        buyers?.join()
        let record = try read(path)
        #expect(record.clients.compactMap(\.answer).map { String(decoding: $0, as: UTF8.self) } == ["yes\n", "no\n"])

        let exploration = Exploration(schedules: 2000, limits: .init(reportsDeadlocks: false))
        // The clients have the recorded order, if no schedule departs from it.
        func compare(_ simulation: Simulation) throws {
            for outcome in play(
                record, in: simulation, timeScale: 0, daemon: { _ = try shop(on: $0, $1, sell: sellAtOnce) })
            { try outcome.check() }
        }
        let usual = exploration.trace(ScheduleToken(seed: 0), compare)
        #expect(usual.fault == nil, "\(usual.picture)")
        guard case .failed(let finding) = exploration.run(compare) else {
            Issue.record("nothing was found")
            return
        }
        #expect(finding.fault.description.contains(" differs from byte ") && finding.token.departures.count == 1)

        // A changed shop looks at its stock, and takes from it a while later. At the recorded times this has no effect.
        func sell(_ simulation: Simulation, timeScale: Double) throws {
            let outcomes = play(record, in: simulation, timeScale: timeScale) { loop, address in
                _ = try shop(on: loop, address) { stock, loop, answer in
                    loop.task {
                        let isThere = stock.left > 0
                        await Task.yield()
                        if isThere { stock.left -= 1 }
                        answer(isThere ? "yes\n" : "no\n")
                    }
                }
            }
            if outcomes.count(where: { $0.answer == Array("yes\n".utf8) }) > 1 { throw Oversold() }
        }
        #expect(exploration.trace(ScheduleToken(seed: 0)) { try sell($0, timeScale: 1) }.fault == nil)
        guard case .failed(let oversold) = exploration.run({ try sell($0, timeScale: 0) }) else {
            Issue.record("nothing was found")
            return
        }
        #expect(oversold.fault.description.contains("Oversold"))
    }
}

private func sellAtOnce(_ stock: Stock, on _: RunLoop, answer: (String) -> Void) {
    answer(stock.left > 0 ? "yes\n" : "no\n")
    stock.left = max(0, stock.left - 1)
}

private struct Oversold: Error {}

private final class Stock: @unchecked Sendable {
    // Unchecked: used only on the loop's thread.
    var left = 1
}

/// Makes a daemon that sells something once.
private func shop(
    on loop: RunLoop, _ address: Endpoint,
    sell: @escaping (Stock, RunLoop, @escaping @Sendable (String) -> Void) -> Void
) throws -> Listener {
    let stock = Stock()
    return try Listener(address: address, on: loop) { _, descriptor, _ in
        let connection = Connection(
            adopting: descriptor, on: loop,
            receive: Framing.lines { connection, _ in
                // Unsafe, but it stays on the loop's thread.
                nonisolated(unsafe) let connection = connection
                sell(stock, loop) { connection.write($0) }
            })
        try? connection.start()
    }
}

/// Runs `count` clients, each of which tries to buy after the previous one.
private func buy(_ count: Int, from address: Endpoint, on loop: RunLoop, completion: @escaping @Sendable () -> Void) {
    guard count > 0 else { return completion() }
    Connection.connect(to: address, on: loop, receive: Framing.lines { connection, _ in connection.finish() }) {
        result in
        guard let connection = try? result.get() else { return }
        connection.closeHandler = { _, _ in buy(count - 1, from: address, on: loop, completion: completion) }
        try? connection.start()
        connection.write("buy\n")
    }
}
