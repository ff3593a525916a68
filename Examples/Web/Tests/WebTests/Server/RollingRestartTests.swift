import Glibc
import RunLoopKit
import RunLoopUnix
import Testing

/// Clients that keep their connections, and send one request after another.
///
/// Unchecked: each thread has its own entry, and they are read when all have ended.
private final class BusyClients: @unchecked Sendable {
    private let threads: [LoopThread]
    private let state: UnsafeMutablePointer<Int32>
    private(set) var failures: [[String]]
    private(set) var answers: [Int]

    init(port: Int, count: Int) {
        failures = .init(repeating: [], count: count)
        answers = .init(repeating: 0, count: count)
        state = .allocate(capacity: 1)
        state.initialize(to: 0)
        threads = (0..<count).map { number in
            LoopThread(name: "client \(number)") { $0.add(CustomSource(), forMode: .default) }
        }
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
            connection = answer.contains("connection: close") ? nil : client
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

@Suite("Rolling restarts of the daemon", .timeLimit(.minutes(5)))
struct RollingRestartTests {
    @Test(
        "two restarts under load refuse no request, with the next daemon ready before the former stops, or not",
        arguments: [true, false])
    func restarts(overlaps: Bool) throws {
        let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        defer { close(socket) }
        #expect(listen(socket, 511) == 0)
        let directory = TemporaryDirectory()
        var web = try WebUnderTest(in: directory, socket: socket, log: "log 0")
        let clients = BusyClients(port: web.port, count: 4)
        for number in 1...2 {
            usleep(200_000)
            if overlaps {
                let next = try WebUnderTest(in: directory, socket: socket, log: "log \(number)")
                try web.stop()
                web = next
            } else {
                try web.stop()
                web = try WebUnderTest(in: directory, socket: socket, log: "log \(number)")
            }
        }
        usleep(200_000)
        clients.end()
        try web.stop()
        #expect(clients.failures.flatMap { $0 } == [])
        #expect(clients.answers.allSatisfy { $0 > 10 }, "\(clients.answers)")
        for number in 0...2 {
            let log = String(decoding: directory.contents(of: "log \(number)") ?? [], as: UTF8.self)
            #expect(log.contains("GET / "), "daemon \(number) has answered")
        }
    }
}
