import Glibc
import RunLoopUnix
import Testing

@Suite("Attacks with heads of requests", .timeLimit(.minutes(5)))
struct HeadAttackTests {
    @Test("heads that come byte by byte are answered with 408, and others are served meanwhile")
    func slow() throws {
        let web = try WebUnderTest(limits: #"{"headSeconds": 1}"#)
        let clients = try (0..<200).map { _ in try RawClient(port: web.port) }
        for client in clients { client.send("GET / HTTP/1.1\r\nhost: x\r\nx: ") }
        let clock = ContinuousClock()
        let start = clock.now
        while clock.now < start + .milliseconds(1_500) {
            for client in clients { client.send("x") }
            usleep(100_000)
        }
        #expect(try output(of: "curl", ["-s", web.url("/")]).text == "RunLoopKit serves this page.\n")
        for client in clients {
            let answer = client.receiveToEnd()
            #expect(answer.hasPrefix("HTTP/1.1 408 Request Timeout\r\n"), "\(answer)")
        }
        eventually { (try? web.metric("web_connections")) == 1 }
        #expect(try web.metric(#"web_refusals_total{limit="headTime"}"#) == 200)
        // A silent client is closed without an answer, and later a client between two requests.
        #expect(try RawClient(port: web.port).receiveToEnd() == "")
        try web.stop()
    }

    @Test(
        "a daemon continued after SIGSTOP answers requests that came meanwhile", arguments: ["", "GET / HTTP/1.1\r\n"])
    func stopped(beginning: String) throws {
        // Longer than stopping the daemon takes, even on a busy machine.
        let web = try WebUnderTest(limits: #"{"headSeconds": 4}"#)
        let client = try RawClient(port: web.port)
        client.send(beginning)
        eventually("it has been accepted") { (try? web.metric("web_connections")) == 2 }
        try web.child.kill(Signal(rawValue: SIGSTOP))
        client.send(beginning.isEmpty ? "GET / HTTP/1.1\r\nhost: x\r\n\r\n" : "host: x\r\n\r\n")
        usleep(4_200_000)
        try web.child.kill(Signal(rawValue: SIGCONT))
        let answer = client.receive(until: "page.\n")
        #expect(answer.hasPrefix("HTTP/1.1 200 "), "\(answer)")
        try web.stop()
    }

    @Test("a client between two requests is closed after the idle time")
    func idle() throws {
        let web = try WebUnderTest(limits: #"{"idleSeconds": 0.5}"#)
        let client = try RawClient(port: web.port)
        client.send("GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        let answer = client.receiveToEnd()
        #expect(answer.hasPrefix("HTTP/1.1 200 ") && answer.hasSuffix("page.\n"), "\(answer)")
        try web.stop()
    }

    private static let long = String(repeating: "x", count: 20_000)

    @Test(
        "a head that is too large is answered with 431",
        arguments: [
            "GET / HTTP/1.1\r\nhost: x\r\nx: \(long)\r\n\r\n",
            "GET / HTTP/1.1\r\nhost: x\r\n\(long): x\r\n\r\n",
            "GET / HTTP/1.1\r\n" + (0..<2_000).map { "x\($0): xxxxxxxxxxxxxxxx\r\n" }.joined() + "\r\n",
            "GET / HTTP/1.1\r\n" + (0..<300).map { "x\($0): x\r\n" }.joined() + "\r\n",
            "GET /\(long) HTTP/1.1\r\nhost: x\r\n\r\n",
        ])
    func large(head: String) throws {
        let web = try WebUnderTest()
        let client = try RawClient(port: web.port)
        client.send(head)
        let answer = client.receiveToEnd()
        #expect(answer.hasPrefix("HTTP/1.1 431 "), "\(answer)")
        #expect(answer.lowercased().contains("connection: close"))
        try web.stop()
    }

    @Test("a head that never ends takes no memory", arguments: ["GET / HTTP/1.1\r\nx: ", "GET /", "x"])
    func endless(beginning: String) throws {
        let web = try WebUnderTest()
        _ = try output(of: "curl", ["-s", web.url("/")])
        let before = web.memory
        for _ in 1...5 {
            let client = try RawClient(port: web.port)
            client.send(beginning)
            for _ in 1...200 { if !client.send(String(repeating: "x", count: 50_000)) { break } }
        }
        #expect(web.memory < before + 20_000_000, "\(before) grew to \(web.memory)")
        #expect(try output(of: "curl", ["-s", web.url("/")]).failure == nil)
        try web.stop()
    }

    @Test("a body that does not come is answered with 408")
    func stalled() throws {
        let web = try WebUnderTest(limits: #"{"stallSeconds": 0.5}"#)
        let client = try RawClient(port: web.port)
        client.send("PUT /uploads/a HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n123")
        #expect(client.receiveToEnd().hasPrefix("HTTP/1.1 408 "))
        eventually { web.directory.names(in: "uploads").isEmpty }
        try web.stop()
    }
}
