import RunLoopUnix
import Testing

@Suite("The daemon with TLS", .timeLimit(.minutes(5)))
struct TLSTests {
    private let directory = TemporaryDirectory()

    private func start(_ arguments: String...) throws -> WebUnderTest {
        try directory.makeCertificate(for: "first")
        if directory.contents(of: "limits") == nil { directory.write("{}".utf8, to: "limits") }
        let files = ["--certificate", directory["chain.pem"], "--key", directory["key.pem"]]
        return try WebUnderTest(limits: nil, files + arguments, in: directory)
    }

    @Test("the client and the daemon agree on the version of HTTP", arguments: ["2", "1.1"])
    func versions(version: String) throws {
        let web = try start()
        let url = web.url("/echo", scheme: "https")
        let answer = try output(
            of: "curl",
            [
                "-s", "--http\(version)", "--cacert", directory["chain.pem"], "-w", "%{http_version}", "-d",
                #"{"message":"hello"}"#, url,
            ])
        #expect(answer.text == "{\"message\":\"hello\"}\n\(version)")
        try web.stop()
    }

    @Test("many clients at once are all answered", arguments: [[], ["--h1"]])
    func load(options: [String]) throws {
        let web = try start("--threads", "2")
        let count = amount(of: "REQUESTS", usually: 10_000)
        let report = try output(
            of: "h2load", options + ["-n", "\(count)", "-c", "20", "-m", "10", web.url("/", scheme: "https")])
        #expect(report.text.contains("\(count) succeeded, 0 failed, 0 errored, 0 timeout"), "\(report.text)")
        #expect(report.text.contains("\(count) 2xx"), "\(report.text)")
        try web.stop()
    }

    private func subject(_ web: WebUnderTest) throws -> String {
        let text = try output(of: "openssl", ["s_client", "-connect", "127.0.0.1:\(web.port)"]).text
        return String(text.split(separator: "\n").first { $0.hasPrefix("subject=") } ?? "")
    }

    private func reload(_ web: WebUnderTest) throws {
        let count = web.log.split(separator: "\n").count { $0.contains("SIGHUP") }
        try web.child.kill(.hangUp)
        eventually { web.log.split(separator: "\n").count { $0.contains("SIGHUP") } > count }
    }

    @Test("a reload takes new certificates and limits, and keeps the former if one cannot be used")
    func reload() throws {
        let web = try start()
        #expect(try subject(web) == "subject=CN = first")
        try directory.makeCertificate(for: "second")
        directory.write(#"{"bodyBytes": 10}"#.utf8, to: "limits")
        try reload(web)
        eventually("the second certificate is served") { (try? subject(web)) == "subject=CN = second" }
        let post = ["-sk", "-o", "/dev/null", "-w", "%{http_code}", "-d", #"{"message":"hello"}"#]
        #expect(try output(of: "curl", post + [web.url("/echo", scheme: "https")]).text == "413")
        directory.write(#"{"bodyBytes": 10, "unknown": 1}"#.utf8, to: "limits")
        try directory.makeCertificate(for: "third")
        try reload(web)
        eventually("the reload is refused") {
            web.log.contains("not reloaded: \(directory["limits"]): there is no limit unknown")
        }
        #expect(try subject(web) == "subject=CN = second")
        try web.stop()
    }

    @Test("a client that does not speak TLS is closed, also one that is silent, and does not disturb others")
    func plain() throws {
        directory.write(#"{"headSeconds": 1}"#.utf8, to: "limits")
        let web = try start()
        let silent = try RawClient(port: web.port)
        let client = try RawClient(port: web.port)
        client.send("GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        #expect(!client.receiveToEnd().contains("200"))
        #expect(silent.receiveToEnd() == "")
        #expect(try output(of: "curl", ["-sk", web.url("/", scheme: "https")]).failure == nil)
        try web.stop()
    }
}
