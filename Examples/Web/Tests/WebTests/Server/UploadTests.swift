import RunLoopUnix
import Testing

@Suite("Uploads to the daemon", .timeLimit(.minutes(5)))
struct UploadTests {
    @Test(
        "an upload comes back as it was, by both versions of HTTP", arguments: ["--http1.1", "--http2-prior-knowledge"])
    func roundTrip(version: String) throws {
        let web = try WebUnderTest()
        let sent = (0..<5_000_000).map { _ in UInt8.random(in: 0...255) }
        web.directory.write(sent, to: "file")
        let url = web.url("/uploads/a.b-c_1")
        let put = try output(of: "curl", ["-s", version, "-T", web.directory["file"], url])
        #expect(put.text == #"{"name":"a.b-c_1","bytes":\#(sent.count)}"# + "\n")
        #expect(try output(of: "curl", ["-s", version, "-o", web.directory["got"], url]).failure == nil)
        #expect(web.directory.contents(of: "got") == sent, "what comes back is not what was sent")
        #expect(web.directory.names(in: "uploads") == ["a.b-c_1"])
        try web.stop()
    }

    /// The fields of a connection's last request.
    private static let last = "host: x\r\nconnection: close\r\n"

    @Test("a name that leads elsewhere is refused")
    func names() throws {
        let web = try WebUnderTest()
        for name in ["..", ".hidden", "a%2fb", "a%00b", "", String(repeating: "x", count: 129), "a b"] {
            let client = try RawClient(port: web.port)
            client.send("PUT /uploads/\(name) HTTP/1.1\r\n\(Self.last)content-length: 1\r\n\r\nx")
            #expect(client.receiveToEnd().hasPrefix("HTTP/1.1 400 "), "\(name)")
        }
        let client = try RawClient(port: web.port)
        client.send("PUT /uploads/../x HTTP/1.1\r\n\(Self.last)content-length: 1\r\n\r\nx")
        #expect(client.receiveToEnd().hasPrefix("HTTP/1.1 404 "))
        #expect(web.directory.names(in: "uploads").isEmpty)
        try web.stop()
    }

    @Test("an upload that is too long is refused before it is sent, or where it becomes too long")
    func tooLong() throws {
        let web = try WebUnderTest(limits: #"{"uploadBytes": 100000}"#)
        let announced = try RawClient(port: web.port)
        announced.send("PUT /uploads/a HTTP/1.1\r\nhost: x\r\ncontent-length: 100001\r\nexpect: 100-continue\r\n\r\n")
        #expect(announced.receiveToEnd().hasPrefix("HTTP/1.1 413 "))
        let chunked = try RawClient(port: web.port)
        chunked.send("PUT /uploads/b HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n")
        for _ in 1...20 { chunked.send("2710\r\n" + String(repeating: "x", count: 10_000) + "\r\n") }
        #expect(chunked.receiveToEnd().hasPrefix("HTTP/1.1 413 "))
        #expect(try web.metric(#"web_refusals_total{limit="uploadBytes"}"#) == 2, "\(web.log)")
        eventually("nothing is left") { web.directory.names(in: "uploads").isEmpty }
        try web.stop()
    }

    @Test("a cut connection leaves nothing behind, and a crash leaves a file that the next start removes")
    func cut() throws {
        let web = try WebUnderTest()
        do {
            let client = try RawClient(port: web.port)
            client.send("PUT /uploads/a HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n")
            client.send([UInt8](repeating: 1, count: 50_000))
            eventually("the upload has begun") { web.directory.names(in: "uploads") == [".upload-1"] }
        }
        eventually("nothing is left") { web.directory.names(in: "uploads").isEmpty }
        let client = try RawClient(port: web.port)
        client.send("PUT /uploads/a HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n123")
        eventually("the upload has begun") { web.directory.names(in: "uploads") == [".upload-2"] }
        // A daemon of the same directory leaves the file alone, and begins one of the same number beside it.
        let other = try WebUnderTest(in: web.directory, log: "other")
        #expect(web.directory.names(in: "uploads") == [".upload-2"])
        try other.stop()
        try web.child.kill(.kill)
        #expect(try wait(for: web.child) == .signalled(.kill, coreDumped: false))
        #expect(web.directory.names(in: "uploads") == [".upload-2"])
        let next = try WebUnderTest(in: web.directory)
        #expect(next.directory.names(in: "uploads").isEmpty)
        try next.stop()
    }
}
