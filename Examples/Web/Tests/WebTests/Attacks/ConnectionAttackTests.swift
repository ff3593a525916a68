import Glibc
import Testing

@Suite("Attacks with connections", .serialized, .timeLimit(.minutes(5)))
struct ConnectionAttackTests {
    private static let request = "GET / HTTP/1.1\r\nhost: x\r\n\r\n"

    @Test(
        "connections above the limit are answered with 503, too many of one address with 429; further ones are closed")
    func limits() throws {
        // On one loop, so that they enter as they came.
        let limits = #"{"connections": 50, "connectionsPerPeer": 40, "headSeconds": 2}"#
        let web = try WebUnderTest(limits: limits, ["--threads", "1"])
        func open(_ count: Int, from source: String) throws -> [RawClient] {
            try (0..<count).map { _ in try RawClient(port: web.port, from: source) }
        }
        var clients = try open(40, from: "127.0.0.1")
        let refused = try RawClient(port: web.port)
        refused.send(Self.request)
        #expect(refused.receiveToEnd().hasPrefix("HTTP/1.1 429 "))
        clients += try open(8, from: "127.0.0.2")
        let other = try RawClient(port: web.port, from: "127.0.0.2")
        other.send(Self.request)
        #expect(other.receive(until: "page.\n").hasPrefix("HTTP/1.1 200 "))
        let late = try RawClient(port: web.port, from: "127.0.0.3")
        late.send(Self.request)
        let answer = late.receiveToEnd()
        #expect(answer.hasPrefix("HTTP/1.1 503 ") && answer.contains("Retry-After: 1\r\n"), "\(answer)")
        let many = try open(200, from: "127.0.0.3")
        #expect(many.last?.receiveToEnd() == "")
        clients = []
        withExtendedLifetime(many) {}
        eventually("there is room again") {
            (try? output(of: "curl", ["-s", web.url("/")]).text) == "RunLoopKit serves this page.\n"
        }
        try web.stop()
    }

    @Test("ten thousand idle connections take a few kilobytes each, and go when their time is over")
    func idle() throws {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        limit.rlim_cur = limit.rlim_max
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        let count = min(10_000, Int(limit.rlim_max) - 500)
        let web = try WebUnderTest(
            limits: #"{"connections": 20000, "connectionsPerPeer": 20000, "headSeconds": 60, "idleSeconds": 5}"#)
        _ = try output(of: "curl", ["-s", web.url("/")])
        let before = web.memory
        var clients = try (0..<count).map { try RawClient(port: web.port, from: "127.0.1.\(1 + $0 % 100)") }
        eventually { (try? web.metric("web_connections")) ?? 0 > Double(count) }
        let fresh = (web.memory - before) / count
        for client in clients { client.send(Self.request) }
        for client in clients { #expect(client.receive(until: "page.\n").hasPrefix("HTTP/1.1 200 ")) }
        let idle = (web.memory - before) / count
        #expect(fresh < 10_000 && idle < 30_000, "bytes for each connection: \(fresh), after a request \(idle)")
        let last = clients.removeLast()
        clients = []
        #expect(last.receiveToEnd() == "")
        eventually { (try? web.metric("web_connections")) == 1 }
        try web.stop()
    }

    @Test("a client that does not read a large file is cut off, and little of it is in memory")
    func unread() throws {
        let web = try WebUnderTest(limits: #"{"stallSeconds": 1}"#)
        web.directory.write([UInt8](repeating: 1, count: 50_000_000), to: "uploads/large")
        _ = try output(of: "curl", ["-s", web.url("/")])
        let before = web.memory
        let clients = try (0..<50).map { _ in try RawClient(port: web.port, room: 4_096) }
        for client in clients {
            client.send("GET /uploads/large HTTP/1.1\r\nhost: x\r\n\r\n")
            client.endOutput()
        }
        eventually { (try? web.metric(#"web_refusals_total{limit="stallTime"}"#)) == 50 }
        #expect(web.memory < before + 40_000_000, "\(before) grew to \(web.memory)")
        eventually { (try? web.metric("web_connections")) == 1 }
        try web.stop()
    }
}
