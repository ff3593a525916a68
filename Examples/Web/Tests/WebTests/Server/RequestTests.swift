import Testing

@Suite("Requests to the daemon", .timeLimit(.minutes(5)))
struct RequestTests {
    private let web: WebUnderTest

    init() throws {
        web = try WebUnderTest(limits: #"{"bodyBytes": 1000}"#)
    }

    private func curl(_ path: String, _ arguments: String..., isHTTP2: Bool = false) throws -> (String, Int) {
        let version = isHTTP2 ? "--http2-prior-knowledge" : "--http1.1"
        let text = try output(of: "curl", ["-s", version, "-w", "\n%{http_code}", web.url(path)] + arguments).text
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        return (lines.dropLast().joined(separator: "\n"), Int(lines.last ?? "") ?? 0)
    }

    @Test("both versions of HTTP get the same answers", arguments: [false, true])
    func routes(isHTTP2: Bool) throws {
        #expect(try curl("/", isHTTP2: isHTTP2) == ("RunLoopKit serves this page.\n", 200))
        let echo = try curl("/echo", "-d", #"{"message": "hé \"there\""}"#, isHTTP2: isHTTP2)
        #expect(echo == (#"{"message":"hé \"there\""}"# + "\n", 200))
        #expect(try curl("/echo", "-d", "no JSON", isHTTP2: isHTTP2).1 == 400)
        #expect(try curl("/echo", "-d", String(repeating: "x", count: 1_001), isHTTP2: isHTTP2).1 == 413)
        #expect(try curl("/nothing", isHTTP2: isHTTP2).1 == 404)
        #expect(try curl("/", "-X", "DELETE", isHTTP2: isHTTP2).1 == 405)
        #expect(try curl("/chat", isHTTP2: isHTTP2).1 == 426)
        #expect(try curl("/", "-I", isHTTP2: isHTTP2).0.lowercased().contains("content-length: 29"))
        #expect(try curl("/health", isHTTP2: isHTTP2) == (#"{"connections":1,"live":true,"ready":true}"# + "\n", 200))
        let metrics = try curl("/metrics", isHTTP2: isHTTP2).0
        #expect(metrics.contains("# TYPE web_requests_total counter\n"))
        #expect(metrics.contains(#"web_requests_total{class="4xx"} 5"#), "\(metrics)")
        #expect(metrics.contains(#"web_refusals_total{limit="bodyBytes"} 1"#), "\(metrics)")
        #expect(metrics.contains("# TYPE runloop_passes counter\n"))
        let version = isHTTP2 ? "HTTP/2.0" : "HTTP/1.1"
        #expect(web.log.contains(#"127.0.0.1 "GET /nothing \#(version)" 404 21 "#), "\(web.log)")
        try web.stop()
    }

    @Test("a line of the log is one request, whatever its target")
    func escaped() throws {
        #expect(try curl("/a\"b", isHTTP2: true).1 == 404)
        eventually { web.log.contains(#""GET /a\"b HTTP/2.0" 404 "#) }
        try web.stop()
    }

    @Test("a client that has ended its output gets answers that take time, and long ones")
    func halfClosedMeanwhile() throws {
        let upload = try RawClient(port: web.port)
        upload.send("PUT /uploads/a HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\n12345")
        upload.endOutput()
        #expect(upload.receiveToEnd().hasPrefix("HTTP/1.1 201 "))
        web.directory.write([UInt8](repeating: 1, count: 10_000_000), to: "uploads/large")
        let reader = try RawClient(port: web.port, room: 4_096)
        let request = "GET /uploads/large HTTP/1.1\r\nhost: x\r\n\r\n"
        reader.send(request + request + "GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        reader.endOutput()
        let answers = reader.receive(.max)
        #expect(answers.count > 20_000_000 && answers.suffix(6) == Array("page.\n".utf8), "\(answers.count)")
        try web.stop()
    }
}
