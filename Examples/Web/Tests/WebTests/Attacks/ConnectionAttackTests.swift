import Glibc
import Testing

@Suite("Attacks with connections", .timeLimit(.minutes(5)))
struct ConnectionAttackTests {
    private static let request = "GET / HTTP/1.1\r\nhost: x\r\n\r\n"

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
}
