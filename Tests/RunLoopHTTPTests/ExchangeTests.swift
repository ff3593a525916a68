#if Adapters
import RunLoopHTTP
import RunLoopKit
import RunLoopUnix
import TestSupport
import Testing

@Suite("Exchanges with handlers, simulated")
struct ExchangeTests {
    private static let host = "host: web\r\n"

    @Test("an exchange receives its body, and answers at once or later")
    func counts() {
        let conversation = Conversation()
        let requests =
            "POST /a HTTP/1.1\r\n\(Self.host)content-length: 3\r\n\r\nabcGET /b HTTP/1.1\r\n\(Self.host)\r\n"
        let answer = conversation.answers(to: requests) { loop, limits in
            HTTPServer(on: loop, limits: limits) { exchange in
                var count = 0
                exchange.receiveHandler = { _, bytes in count += bytes.readableBytes }
                exchange.endHandler = { exchange in
                    loop.perform(afterDelay: .seconds(1)) { exchange.respond(.text("\(count) bytes")) }
                }
            }
        }.lines
        #expect(answer.contains("//3 bytesHTTP/1.1 200 OK/") && answer.hasSuffix("//0 bytes|open"), "\(answer)")
    }

    @Test("an answer in chunks that is complete at once has its end, also when the connection closes")
    func chunksAtOnce() {
        for field in ["", "connection: close\r\n"] {
            let answer = Conversation().answers(to: "GET / HTTP/1.1\r\n\(Self.host)\(field)\r\n") { loop, limits in
                HTTPServer(on: loop, limits: limits) { exchange in
                    exchange.begin(HTTPResponse(status: .ok))
                    exchange.write(ByteBuffer(string: "abc"))
                    exchange.finish()
                }
            }.lines
            #expect(answer.contains("//3/abc/0//|"), "\(answer)")
        }
    }

    @Test("a paused exchange leaves the body with its client")
    func pauses() {
        let conversation = Conversation()
        let received = Log<String>()
        let body = String(repeating: "x", count: 900_000)
        let answer = conversation.answers(
            to: "POST / HTTP/1.1\r\n\(Self.host)content-length: 900000\r\n\r\n\(body)"
        ) { loop, limits in
            HTTPServer(on: loop, limits: limits) { exchange in
                var count = 0
                exchange.pauseReading()
                exchange.receiveHandler = { exchange, bytes in
                    count += bytes.readableBytes
                    exchange.pauseReading()
                    loop.perform(afterDelay: .milliseconds(100)) { exchange.resumeReading() }
                    received.append("\(bytes.readableBytes <= 300_000)")
                }
                exchange.endHandler = { $0.respond(.text("\(count)")) }
                loop.perform(afterDelay: .seconds(5)) { exchange.resumeReading() }
            }
        }
        #expect(answer.hasSuffix("900000|open"), "\(answer)")
        #expect(received.entries.count > 3 && received.entries.allSatisfy { $0 == "true" }, "\(received.entries)")
    }

    @Test("an answer is written as fast as its client reads")
    func drains() {
        let conversation = Conversation()
        let answer = conversation.answers(to: "GET / HTTP/1.1\r\n\(Self.host)connection: close\r\n\r\n") {
            loop, limits in
            HTTPServer(on: loop, limits: limits) { exchange in
                var left = 100
                func write(_ exchange: HTTPExchange) {
                    while left > 0, exchange.isWritable {
                        left -= 1
                        exchange.write(ByteBuffer(repeating: UInt8(ascii: "x"), count: 10_000))
                    }
                    if left == 0, exchange.isOpen { exchange.finish() }
                }
                exchange.begin(.init(status: .ok), length: 1_000_000)
                exchange.drainHandler = { write($0) }
                write(exchange)
            }
        }
        #expect(answer.utf8.count > 1_000_000 && answer.hasSuffix("xxx|closed"), "\(answer.suffix(100))")
        #expect(conversation.completions.entries.map(\.sentBytes) == [1_000_000])
    }

    @Test("an exchange calls its close handler once, complete or not")
    func ends() {
        let ended = Log<String>()
        let conversation = Conversation()
        _ = conversation.run { loop, limits in
            HTTPServer(on: loop, limits: limits) { exchange in
                exchange.closeHandler = { exchange, error in
                    ended.append("\(exchange.request.path ?? "") \(error.map { "\($0)" } ?? "complete")")
                }
                if exchange.request.path == "/a" { exchange.respond(.text("a")) }
            }
        } client: { loop, _ in
            let peer = try await Connection.connect(host: "web", port: 80, on: loop)
            try await peer.write("GET /a HTTP/1.1\r\nhost: web\r\n\r\nGET /b HTTP/1.1\r\nhost: web\r\n\r\n")
            try await loop.clock.sleep(for: .seconds(1))
            peer.reset()
        }
        #expect(ended.entries == ["/a complete", "/b \(HTTPServer.ExchangeError.closed)"])
    }
}
#endif
