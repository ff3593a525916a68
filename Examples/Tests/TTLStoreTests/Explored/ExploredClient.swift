import RunLoopKit
import RunLoopUnix

/// A connection to the explored store. Checks that each request has its reply, in order, and that each reply is
/// allowed.
final class ExploredClient {
    enum Request {
        case set(_ number: Int, seconds: Int? = nil)
        case get
        case ping
    }

    /// The error for a connection that has ended before all replies had arrived.
    struct Lost: Error {}

    private let store: ExploredStore
    private let loop: RunLoop
    private let connection: Connection
    private var unread: [UInt8] = []
    private var pending: [(request: Request, key: String, sent: RunLoop.Instant)] = []

    /// Connects.
    nonisolated(nonsending) init(on loop: RunLoop, of store: ExploredStore) async throws {
        (self.loop, self.store) = (loop, store)
        var limits = Connection.Limits()
        limits.idleTimeout = .milliseconds(1_500)
        connection = try await Connection.connect(
            to: Endpoint("10.1.0.1", port: 6379), on: loop, limits: limits, timeout: .seconds(1))
    }

    func close() {
        connection.close()
    }

    nonisolated(nonsending) func send(_ request: Request, _ key: String = "") async throws {
        pending.append((request, key, loop.now))
        switch request {
        case .set(let number, let seconds):
            store.keys[key]!.send(number, life: seconds.map { .seconds($0) }, at: loop.now)
            try await connection.write("SET \(key) \(number)\(seconds.map { " EX \($0)" } ?? "")\r\n")
        case .get: try await connection.write("GET \(key)\r\n")
        case .ping: try await connection.write("PING\r\n")
        }
    }

    /// Waits for all replies, and checks that no more follow.
    nonisolated(nonsending) func end() async throws {
        try await send(.ping)
        try await takeReplies()
    }

    nonisolated(nonsending) func takeReplies() async throws {
        while !pending.isEmpty {
            var line = try await nextLine()
            if line.first == "$", line != "$-1" { line = try await nextLine() }
            take(line, pending.removeFirst())
        }
    }

    /// Returns the next line, unlike `lines()` without the part of a line that a killed store has sent.
    private nonisolated(nonsending) func nextLine() async throws -> String {
        while true {
            if let end = unread.firstIndex(of: UInt8(ascii: "\n")) {
                defer { unread.removeFirst(end + 1) }
                return String(decoding: unread[..<end].dropLast(), as: UTF8.self)
            }
            guard let bytes = try await connection.read() else { throw Lost() }
            unread += bytes
        }
    }

    private func take(_ line: String, _ asked: (request: Request, key: String, sent: RunLoop.Instant)) {
        let key = asked.key
        switch (asked.request, line) {
        case (.set(let number, _), "+OK"): store.keys[key]!.acknowledge(number, at: loop.now)
        case (.get, "$-1"): check(key, nil, asked.sent)
        case (.get, _) where Int(line) != nil: check(key, Int(line), asked.sent)
        case (.ping, "+PONG"): break
        default: store.fail("the reply to \(asked.request) of \(key) is \(line)")
        }
    }

    private func check(_ key: String, _ value: Int?, _ sent: RunLoop.Instant) {
        let known = store.keys[key]!
        let mayBe = known.mayBe(
            value, asked: sent, answered: loop.now, allowance: .milliseconds(2), isSafe: store.isSafe)
        if !mayBe { store.fail("\(key) is \(value.map { "\($0)" } ?? "gone") at \(loop.now), and was \(known)") }
    }
}
