import Glibc
import RunLoopUnix
import Testing

/// The path of the members in Python, beside this file.
let chatClient = #filePath.replacing("ChatTests.swift", with: "chat-client")

/// `true` if Python has the library for WebSocket.
let hasWebSockets = (try? output(of: "/usr/bin/python3", ["-c", "import websockets"]))?.failure == nil

@Suite("The chat", .timeLimit(.minutes(5)))
struct ChatTests {
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
