#if Adapters
import RunLoopHTTP
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopUnix
import TestSupport
import Testing

@Suite("An HTTP client with servers that misbehave, simulated")
struct BadServerTests {
    /// An act of the server after it has sent its bytes.
    enum End: Sendable {
        case stays, closes, resets
        /// The server sends the bytes again and again.
        case repeats
    }

    /// Sends one request to a server that sends `bytes` for it, and returns the outcome and the time in seconds.
    private func outcome(
        _ bytes: String, _ end: End, method: HTTPRequest.Method = .get, body: HTTPClient.RequestBody.Kind = .none
    ) -> String {
        let log = Log<String>()
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            network.addHost("web") { loop in
                let server = Server(on: loop) { connection, _ in
                    _ = try await connection.read()
                    try await connection.write(bytes)
                    switch end {
                    case .stays: while try await connection.read() != nil {}
                    case .closes: break
                    case .resets:
                        // The bytes arrive before.
                        try await loop.clock.sleep(for: .seconds(1))
                        connection.reset()
                    case .repeats:
                        while true {
                            try await connection.write(bytes)
                            try await loop.clock.sleep(for: .milliseconds(10))
                        }
                    }
                }
                try server.listen(on: Endpoint("0.0.0.0", port: 80))
            }
            network.addHost("client") { loop in
                loop.task {
                    let client = HTTPClient(on: loop)
                    do {
                        let answer = try await client.send(HTTPRequest(method, "http://web/"), body: body.body)
                        let text = String(buffer: try await answer.body.collect(upTo: 1_000))
                        log.append("\(answer.status.code) \(text)")
                    } catch let failure as HTTPClient.Failure {
                        log.append("\(failure)".split(separator: ":").first.map(String.init) ?? "")
                    } catch { log.append("other \(error)") }
                    log.append("\(loop.now.nanoseconds / 1_000_000_000)")
                    try await loop.clock.sleep(for: .seconds(100))
                    log.append("\(client.connectionCount)")
                }
            }
            simulation.advance(by: .seconds(600))
        }
        return log.entries.joined(separator: ", ")
    }

    private static let malformed = "the server's answer cannot be read"
    private static let closed = "the connection closed before the answer was complete"
    private static let ok = "HTTP/1.1 200 OK\r\n"

    @Test(
        "each answer that is not one has its error, and no connection is left",
        arguments: [
            // Nothing, or not HTTP.
            ("", .closes, "\(closed), 0, 0"), ("", .resets, "\(closed), 1, 0"),
            ("", .stays, "the server did not answer in time, 30, 0"),
            ("SSH-2.0-OpenSSH\r\n", .stays, "\(malformed), 0, 0"),
            ("HTTP/1.1 2000 OK\r\n\r\n", .stays, "\(malformed), 0, 0"),
            ("HTTP/1.1 abc OK\r\n\r\n", .stays, "\(malformed), 0, 0"),
            ("HTTP/3.0 200 OK\r\n\r\n", .stays, "\(malformed), 0, 0"),
            // Cut heads, and heads without an end.
            ("HTTP/1.1 200", .closes, "\(closed), 0, 0"), (ok + "x: y\r\n", .closes, "\(closed), 0, 0"),
            (ok + "x: y\r\n", .stays, "the server did not answer in time, 30, 0"),
            (ok + "x: " + String(repeating: "y", count: 100_000), .stays, "\(malformed), 0, 0"),
            ("x: yyyyyyyyyyyyyyyyyyyy\r\n", .repeats, "\(malformed), 0, 0"),
            (ok + "x y: z\r\n\r\n", .stays, "\(malformed), 0, 0"),
            (ok + "x: a\u{0}b\r\n\r\n", .stays, "\(malformed), 0, 0"),
            // Wrong lengths.
            (ok + "content-length: 5\r\n\r\nabc", .closes, "\(closed), 0, 0"),
            (ok + "content-length: 5\r\n\r\nabc", .resets, "\(closed), 1, 0"),
            (ok + "content-length: 5\r\n\r\nabc", .stays, "the server stalled, 30, 0"),
            (ok + "content-length: -5\r\n\r\nabc", .stays, "\(malformed), 0, 0"),
            (ok + "content-length: 3\r\ncontent-length: 4\r\n\r\nabc", .stays, "\(malformed), 0, 0"),
            (
                ok + "content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", .stays,
                "\(malformed), 0, 0"
            ),
            (ok + "content-length: 2000\r\n\r\n", .stays, "the body of the answer is too long, 0, 0"),
            // Chunks.
            (ok + "transfer-encoding: chunked\r\n\r\nx\r\n", .stays, "\(malformed), 0, 0"),
            (ok + "transfer-encoding: chunked\r\n\r\n3\r\nabcd\r\n", .stays, "\(malformed), 0, 0"),
            (ok + "transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n", .closes, "\(closed), 0, 0"),
            (ok + "transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n", .stays, "the server stalled, 30, 0"),
            (ok + "transfer-encoding: chunked\r\n\r\n5", .repeats, "\(malformed), 0, 0"),
            // More than was asked for: the first answer counts.
            (ok + "content-length: 3\r\n\r\nabc" + ok + "content-length: 1\r\n\r\nx", .stays, "200 abc, 0, 0"),
            (ok + "content-length: 3\r\n\r\nabcdef", .stays, "200 abc, 0, 0"),
            // To the end of the connection.
            (ok + "\r\nabc", .closes, "200 abc, 0, 0"),
            // Informational answers come before the last one; without an end, the time is over.
            ("HTTP/1.1 103 Early Hints\r\n\r\n" + ok + "content-length: 3\r\n\r\nabc", .closes, "200 abc, 0, 0"),
            ("HTTP/1.1 100 Continue\r\n\r\n", .repeats, "the server did not answer in time, 30, 0"),
        ] as [(String, End, String)])
    func bad(bytes: String, end: End, expected: String) {
        #expect(outcome(bytes, end) == expected)
    }

    @Test("endless chunks are taken piece by piece, and end with the limit")
    func endless() {
        let pieces = outcome(Self.ok + "transfer-encoding: chunked\r\n\r\n", .stays)
        #expect(pieces.hasPrefix("the server stalled"), "\(pieces)")
        let chunk = "400\r\n" + String(repeating: "x", count: 0x400) + "\r\n"
        let many = outcome(Self.ok + "transfer-encoding: chunked\r\n\r\n" + chunk, .stays)
        #expect(many == "the body of the answer is too long, 0, 0", "\(many)")
    }

    @Test("an answer that is cut at any byte is never taken for a whole one", arguments: [End.closes, .resets])
    func cuts(end: End) {
        for answer in [
            Self.ok + "content-length: 3\r\n\r\nabc",
            Self.ok + "transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        ] {
            for count in 0..<answer.utf8.count {
                let part = String(decoding: answer.utf8.prefix(count), as: UTF8.self)
                let result = outcome(part, end)
                #expect(
                    result.hasPrefix(Self.closed) || result.hasPrefix(Self.malformed),
                    "\(part.debugDescription): \(result)")
                #expect(result.hasSuffix(", 0"), "\(part.debugDescription): \(result)")
            }
            #expect(outcome(answer, end).hasPrefix("200 abc"))
        }
    }

    @Test("an answer that comes before all of a body has been sent ends the request, and the connection")
    func early() {
        let result = outcome(
            "HTTP/1.1 413 Content Too Large\r\ncontent-length: 3\r\n\r\nbig", .stays, method: .post, body: .endless)
        #expect(result == "413 big, 0, 0")
    }
}

extension HTTPClient.RequestBody {
    /// Bodies that a test may pass to another thread.
    enum Kind: Sendable {
        case none, endless

        var body: HTTPClient.RequestBody {
            switch self {
            case .none: .none
            case .endless: .stream { while true { try await $0.write([UInt8](repeating: 1, count: 10_000)) } }
            }
        }
    }
}
#endif
