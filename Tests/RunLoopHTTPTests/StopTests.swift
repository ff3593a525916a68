#if Adapters
import RunLoopHTTP
import RunLoopKit
import RunLoopUnix
import TestSupport
import Testing

@Suite("The end of an HTTP server, simulated")
struct StopTests {
    @Test(
        "a server that shuts down answers the requests that have come, refuses later connections, and says when it is empty"
    )
    func shutDown() {
        let conversation = Conversation()
        let done = Log<String>()
        let log = conversation.run(resources) { loop, server in
            loop.perform(afterDelay: .milliseconds(500)) {
                server.shutDown { done.append("\(loop.now.nanoseconds / 100_000_000) \(server.connectionCount)") }
            }
        } client: { loop, log in
            let peer = try await Connection.connect(host: "web", port: 80, on: loop)
            try await peer.write("GET /stream HTTP/1.1\r\nhost: web\r\n\r\n")
            let idle = try await Connection.connect(host: "web", port: 80, on: loop)
            let late = try await Connection.connect(host: "web", port: 80, on: loop)
            try await loop.clock.sleep(for: .seconds(1))
            // The answer to a request that was under way.
            try await late.write("GET / HTTP/1.1\r\nhost: web\r\n\r\n")
            for peer in [peer, idle, late] {
                var text = ""
                while let bytes = try await peer.read() { text += String(decoding: bytes, as: UTF8.self) }
                log.append(String(text.lines.suffix(30)))
            }
            do { _ = try await Connection.connect(host: "web", port: 80, on: loop) } catch { log.append("refused") }
        }
        #expect(log.count == 4 && log[0].hasSuffix("/0/x-end: yes//") && log[1] == "", "\(log)")
        #expect(log[2].hasSuffix("hello") && log[3] == "refused", "\(log)")
        #expect(done.entries.count == 1 && done.entries[0].hasSuffix(" 0"), "\(done.entries)")
    }

    @Test("a deadline closes the rest, and the loop of a closed server has nothing to do")
    func deadline() {
        let conversation = Conversation()
        let done = Log<String>()
        _ = conversation.run(resources) { loop, server in
            loop.perform(afterDelay: .seconds(1)) {
                server.shutDown(within: .seconds(2)) { done.append("\(loop.now.nanoseconds / 1_000_000_000)") }
            }
        } client: { loop, _ in
            let peer = try await Connection.connect(host: "web", port: 80, on: loop)
            try await peer.write("GET /sleeps HTTP/1.1\r\nhost: web\r\n\r\n")
            while try await peer.read() != nil {}
        }
        #expect(done.entries == ["3"])
    }
}
#endif
