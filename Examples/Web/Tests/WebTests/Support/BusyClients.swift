import RunLoopKit

/// Clients that keep their connections, and send one request after another.
///
/// Unchecked: each thread has its own entry, and they are read after all have ended.
final class BusyClients: @unchecked Sendable {
    private let threads: [LoopThread]
    private(set) var failures: [[String]]
    private(set) var answers: [Int]

    init(port: Int, count: Int) {
        failures = .init(repeating: [], count: count)
        answers = .init(repeating: 0, count: count)
        threads = (0..<count).map { LoopThread(name: "client \($0)") }
        for (number, thread) in threads.enumerated() {
            thread.remote.perform { [self] loop in next(number, nil, port, loop) }
        }
    }

    private func next(_ number: Int, _ connection: RawClient?, _ port: Int, _ loop: RunLoop) {
        var connection = connection
        do {
            let client = try connection ?? RawClient(port: port)
            client.send("GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            let answer = client.receive(until: "page.\n")
            answers[number] += 1
            if !answer.hasPrefix("HTTP/1.1 200 ") { failures[number].append("answer: \(answer)") }
            connection = answer.lowercased().contains("connection: close") ? nil : client
        } catch {
            failures[number].append("\(error)")
        }
        loop.perform { [self, connection] in next(number, connection, port, loop) }
    }

    func end() {
        for thread in threads { thread.stop() }
        for thread in threads { thread.join() }
    }
}
