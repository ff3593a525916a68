import RunLoopUnix
import Testing

@Suite("Stopping the daemon", .timeLimit(.minutes(5)))
struct StopTests {
    @Test("a request in progress is finished, and its connection closes")
    func inProgress() throws {
        let web = try WebUnderTest()
        let client = try RawClient(port: web.port)
        client.send("PUT /uploads/a HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n12345")
        eventually { web.directory.names(in: "uploads") == [".upload-1"] }
        let idle = try RawClient(port: web.port)
        idle.send("GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        #expect(idle.receive(until: "page.\n").contains("200 OK"))
        try web.child.kill(.terminate)
        eventually { web.log.contains("SIGTERM") }
        // The next request is answered too, and one of them is the last.
        var last = ""
        while !last.lowercased().contains("connection: close") {
            idle.send("GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            last = idle.receive(until: "page.\n")
            try #require(last.contains("200 OK"))
        }
        #expect(idle.receiveToEnd() == "")
        client.send("67890")
        let answer = client.receiveToEnd()
        #expect(
            answer.hasPrefix("HTTP/1.1 201 ") && answer.lowercased().contains("connection: close"),
            "\(answer)\(web.log)")
        #expect(try wait(for: web.child) == .exited(0))
        #expect(web.directory.contents(of: "uploads/a") == Array("1234567890".utf8))
    }

    @Test("a client that never ends is left behind when the time is over")
    func limited() throws {
        let web = try WebUnderTest(["--drain", "1"])
        let client = try RawClient(port: web.port)
        client.send("PUT /uploads/a HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n12345")
        eventually { web.directory.names(in: "uploads") == [".upload-1"] }
        try web.stop()
        #expect(web.log.contains("closing 1 connections before their end"))
        #expect(!client.receiveToEnd().contains("201"))
        #expect(web.directory.names(in: "uploads").isEmpty)
    }
}
