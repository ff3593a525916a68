import Glibc
import RunLoopUnix
import Testing

/// The path of the members in Python, beside this file.
let chatClient = #filePath.replacing("ChatTests.swift", with: "chat-client")

/// `true` if Python has the library for WebSocket.
let hasWebSockets = (try? output(of: "/usr/bin/python3", ["-c", "import websockets"]))?.failure == nil

@Suite("The chat", .timeLimit(.minutes(5)))
struct ChatTests {
    private static let opening = """
        GET /chat HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
        sec-websocket-version: 13\r\nsec-websocket-key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n
        """

    private func join(_ web: WebUnderTest, room: Int32? = nil) throws -> RawClient {
        let client = try RawClient(port: web.port, room: room)
        client.send(Self.opening)
        let answer = client.receive(until: "\r\n\r\n")
        try #require(answer.hasPrefix("HTTP/1.1 101 "), "\(answer)\n\(web.log)")
        return client
    }

    /// Returns a masked frame.
    private func frame(_ opcode: UInt8, _ bytes: [UInt8]) -> [UInt8] {
        [0x80 | opcode, 0x80 | 126, UInt8(bytes.count >> 8), UInt8(bytes.count & 255), 0, 0, 0, 0] + bytes
    }

    @Test(
        "messages reach all members in one order, on one loop or several", .enabled(if: hasWebSockets),
        arguments: [1, 2])
    func members(threads: Int) throws {
        let web = try WebUnderTest(["--threads", "\(threads)"])
        let url = web.url("/chat", scheme: "ws")
        let talk = try output(of: "/usr/bin/python3", [chatClient, url, "talk"])
        #expect(talk.text == "passed\n" && talk.failure == nil, "\(talk.text)\n\(web.log)")
        eventually("all have left") { (try? web.metric("web_chat_members")) == 0 }
        try web.stop()
    }

    @Test("text that is not UTF-8 closes with 1007, and a broken frame with 1002")
    func broken() throws {
        let web = try WebUnderTest()
        for (bytes, code) in [
            (frame(1, [0xc3, 0x28]), [0x03, 0xef] as [UInt8]), ([0xf1, 0x80, 0, 0, 0, 0], [0x03, 0xea]),
        ] {
            let client = try join(web)
            client.send(bytes)
            let answer = client.receive(4)
            #expect(answer == [0x88, 2] + code, "\(answer)")
        }
        try web.stop()
    }

    @Test("a member who does not read is dropped, and the others miss nothing")
    func slow() throws {
        let web = try WebUnderTest(limits: #"{"unreadBytes": 100000, "messagesPerSecond": 1000000}"#)
        let (talker, slow) = (try join(web), try join(web, room: 4_096))
        let text = [UInt8](repeating: UInt8(ascii: "x"), count: 50_000)
        var sent = 0
        // The buffers of the slow member's socket fill first.
        while try web.metric(#"web_refusals_total{limit="unreadBytes"}"#) == 0, sent < 1_000 {
            for _ in 1...10 {
                talker.send(frame(1, text))
                let count = talker.receive(4 + text.count).count
                try #require(count == 4 + text.count, "\(count) bytes\n\(web.log)")
            }
            sent += 10
        }
        #expect(slow.receive(.max).count < sent * text.count)
        eventually("one is left") { (try? web.metric("web_chat_members")) == 1 }
        try web.stop()
    }

    @Test("a member who does not answer pings is dropped")
    func silent() throws {
        let web = try WebUnderTest(limits: #"{"idleSeconds": 0.2}"#)
        let client = try join(web)
        #expect(client.receive(2) == [0x89, 0])
        #expect(client.receive(.max) == [])
        try web.stop()
    }

    @Test("a stop closes with 1001", .enabled(if: hasWebSockets))
    func stop() throws {
        let web = try WebUnderTest()
        let file = open(web.directory["member"], O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        defer { close(file) }
        let member = try ChildProcess.spawn(
            .path("/usr/bin/python3"), arguments: [chatClient, web.url("/chat", scheme: "ws"), "listen"],
            standardInput: .null, standardOutput: .descriptor(file), standardError: .descriptor(file))
        eventually("the member has joined") { web.directory.contents(of: "member") == Array("joined\n".utf8) }
        try web.stop()
        #expect(try wait(for: member) == .exited(0))
        #expect(web.directory.contents(of: "member") == Array("joined\n1001\n".utf8))
    }
}
