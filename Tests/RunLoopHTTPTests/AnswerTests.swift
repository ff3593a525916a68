#if Adapters
import RunLoopHTTP
import RunLoopKit
import RunLoopUnix
import TestSupport
import Testing

@Suite("Answers of an HTTP server, simulated")
struct AnswerTests {
    private let conversation = Conversation()
    private static let host = "host: web\r\n"
    private static let ok = "HTTP/1.1 200 OK/Content-Type: text/plain; charset=utf-8/"

    private func answers(to requests: String) -> String { conversation.answers(to: requests, resources).lines }

    @Test("a request is answered with its status, its type, its length and the date, and the connection stays open")
    func plain() {
        let answer = conversation.answers(to: "GET / HTTP/1.1\r\n\(Self.host)\r\n", resources)
        #expect(
            answer == """
                HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 5\r\n\
                Date: Mon, 01 Jan 2001 00:00:00 GMT\r\n\r\nhello|open
                """)
    }

    @Test("bodies with a length and in chunks are echoed")
    func bodies() {
        let answer = answers(
            to: "POST /echo HTTP/1.1\r\n\(Self.host)content-length: 3\r\n\r\nabc"
                + "POST /echo HTTP/1.1\r\n\(Self.host)transfer-encoding: chunked\r\n\r\n2\r\nde\r\n1\r\nf\r\n0\r\n\r\n"
                + "POST /pieces HTTP/1.1\r\n\(Self.host)transfer-encoding: chunked\r\n\r\n1\r\ng\r\n0\r\nx-sum: 7\r\n\r\n"
        )
        #expect(
            answer == "HTTP/1.1 200 OK/Content-Length: 3//abcHTTP/1.1 200 OK/Content-Length: 3//def"
                + "\(Self.ok)Content-Length: 12//1 [x-sum: 7]|open", "\(answer)")
    }

    @Test("a client that does not read has three pieces of an answer in memory", arguments: [true, false])
    func unread(isInChunks: Bool) {
        let pieces = Log<Int>()
        _ = conversation.run {
            endless($0, $1, pieces)
        } client: { loop, _ in
            let peer = try await Connection.connect(host: "web", port: 80, on: loop)
            peer.pauseReading()
            try await peer.write("GET / HTTP/1.\(isInChunks ? 1 : 0)\r\n\(Self.host)\r\n")
            try await loop.clock.sleep(for: .seconds(20))
            peer.close()
        }
        // The systems of the two hosts take five.
        #expect(pieces.entries.count <= 8)
    }

    @Test("an answer without a length comes in chunks, with trailers; HTTP/1.0 gets it to the end of the connection")
    func streams() {
        #expect(
            answers(to: "GET /stream HTTP/1.1\r\n\(Self.host)\r\n")
                == "HTTP/1.1 200 OK/Content-Type: text/plain/Transfer-Encoding: chunked//3/one/3/two/0/x-end: yes//|open"
        )
        #expect(
            answers(to: "GET /stream HTTP/1.0\r\nconnection: keep-alive\r\n\r\n")
                == "HTTP/1.0 200 OK/Content-Type: text/plain/Connection: close//onetwo|closed")
    }

    @Test("HEAD is answered with the fields of GET, and without a body")
    func heads() {
        let answer = answers(
            to: "HEAD / HTTP/1.1\r\n\(Self.host)\r\nHEAD /stream HTTP/1.1\r\n\(Self.host)\r\n"
                + "GET /empty HTTP/1.1\r\n\(Self.host)\r\nGET / HTTP/1.1\r\n\(Self.host)connection: close\r\n\r\n")
        #expect(
            answer == "\(Self.ok)Content-Length: 5//HTTP/1.1 200 OK/Content-Type: text/plain//HTTP/1.1 204 No Content//"
                + "\(Self.ok)Content-Length: 5/Connection: close//hello|closed")
    }

    @Test("HTTP/1.0 closes, unless it asks to stay")
    func old() {
        let answer = answers(to: "GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\nGET / HTTP/1.0\r\n\r\n")
        #expect(
            answer == """
                HTTP/1.0 200 OK/Content-Type: text/plain; charset=utf-8/Content-Length: 5/Connection: keep-alive//hello\
                HTTP/1.0 200 OK/Content-Type: text/plain; charset=utf-8/Content-Length: 5/Connection: close//hello|closed
                """)
    }

    @Test("requests that come together are answered in their order")
    func pipelined() {
        let requests = (0..<2_000).map { "GET /\($0) HTTP/1.1\r\n\(Self.host)\r\n" }.joined()
        let answer = conversation.answers(to: requests, resources)
        let names = answer.split(whereSeparator: \.isNewline).filter { $0.hasPrefix("there is no ") }
        #expect(names == (0..<2_000).map { "there is no /\($0)" })
    }

    @Test("many requests that wait for a slow one are all answered, and need the stack of one")
    func behindSlow() {
        let requests = (0..<6_000).map { "GET /\($0) HTTP/1.1\r\n\(Self.host)\r\n" }.joined()
        let answer = conversation.answers(
            to: "GET /stream HTTP/1.1\r\n\(Self.host)\r\n" + requests, resources)
        let names = answer.split(whereSeparator: \.isNewline).filter { $0.hasPrefix("there is no ") }
        #expect(names == (0..<6_000).map { "there is no /\($0)" })
    }

    @Test("requests that come one by one behind a slow one are read and answered")
    func trickling() {
        let request = "GET /stream HTTP/1.1\r\n\(Self.host)\r\n"
        let answer = conversation.answers(to: (0..<5).map { _ in (.milliseconds(100), request) }, resources)
        #expect(answer.split(separator: "x-end: yes").count == 6 && answer.hasSuffix("|open"), "\(answer)")
    }

    @Test("a client that has ended its output gets its answers, also those that take time")
    func halfClosed() {
        let requests = "GET /stream HTTP/1.1\r\n\(Self.host)\r\nGET / HTTP/1.1\r\n\(Self.host)\r\n"
        let answer = conversation.answers(to: [(.zero, requests)], endsOutput: true, resources).lines
        #expect(answer.contains("/0/x-end: yes//HTTP/1.1 200 OK/") && answer.hasSuffix("hello|closed"), "\(answer)")
    }

    @Test("a client receives 100 Continue when the program wants the body, and only then")
    func continues() {
        let head = "HTTP/1.1\r\n\(Self.host)expect: 100-continue\r\ncontent-length: 3\r\n\r\n"
        let echo = conversation.answers(to: [(.zero, "POST /echo \(head)"), (.seconds(1), "abc")], resources).lines
        #expect(echo == "HTTP/1.1 100 Continue//HTTP/1.1 200 OK/Content-Length: 3//abc|open")
        let refused = conversation.answers(to: [(.zero, "POST /nothing \(head)")], resources).lines
        #expect(refused.hasPrefix("HTTP/1.1 404 Not Found/") && refused.hasSuffix("|closed"), "\(refused)")
        #expect(refused.contains("/Connection: close/"))
    }

    @Test("the rest of a body that the program does not want is read and forgotten, and the connection stays open")
    func early() {
        let requests: [(Duration, String)] = [
            (.zero, "POST /early HTTP/1.1\r\n\(Self.host)content-length: 200000\r\n\r\n"),
            (.seconds(1), String(repeating: "x", count: 200_000) + "GET / HTTP/1.1\r\n\(Self.host)\r\n"),
        ]
        let answer = conversation.answers(to: requests, resources).lines
        #expect(answer == "\(Self.ok)Content-Length: 5//early\(Self.ok)Content-Length: 5//hello|open")
    }

    @Test("an error is answered with 500 and reported; after the beginning of an answer, the connection closes")
    func errors() {
        let failed = answers(to: "GET /fails HTTP/1.1\r\n\(Self.host)\r\nGET / HTTP/1.1\r\n\(Self.host)\r\n")
        #expect(
            failed.hasPrefix("HTTP/1.1 500 Internal Server Error/") && failed.hasSuffix("hello|open"), "\(failed)")
        let broken = answers(to: "GET /broken HTTP/1.1\r\n\(Self.host)\r\n")
        #expect(broken.contains("/5/begun") && !broken.contains("/0/"), "\(broken)")
        #expect(conversation.failures.entries == ["Broken()", "Broken()"])
        #expect(conversation.completions.entries.map(\.isCutOff) == [false, false, true])
    }

    @Test("a value with line ends does not become two fields, or another answer")
    func splitting() {
        let answer = answers(to: "GET /split HTTP/1.1\r\n\(Self.host)\r\n")
        #expect(answer == "HTTP/1.1 200 OK/x-echo: a  x-evil: b    c/Content-Length: 0//|open")
    }

    @Test("an answer with another length than it announced is not completed")
    func lengths() {
        for path in ["/short", "/long"] {
            let answer = answers(to: "GET \(path) HTTP/1.1\r\n\(Self.host)\r\n")
            #expect(answer.contains("/Content-Length: ") && !answer.contains("|open"), "\(answer)")
        }
        #expect(conversation.completions.entries.map(\.isCutOff) == [true, true])
    }

    @Test("each request is noted with its status, its bytes and its time")
    func completions() {
        _ = answers(
            to:
                "POST /echo HTTP/1.1\r\n\(Self.host)content-length: 3\r\n\r\nabcGET /stream HTTP/1.1\r\n\(Self.host)\r\n"
        )
        let notes = conversation.completions.entries.map {
            "\($0.request?.path ?? "-") \($0.status?.code ?? 0) \($0.receivedBytes) \($0.sentBytes) \($0.duration)"
        }
        #expect(notes == ["/echo 200 3 3 0.0 seconds", "/stream 200 0 6 2.0 seconds"])
        _ = answers(to: "GET / HTTP/1.0\r\n\r\n")
        #expect(conversation.completions.entries.map(\.version) == ["HTTP/1.1", "HTTP/1.1", "HTTP/1.0"])
    }

    @Test("a stream is not written for HEAD, and a request may have a longer body than the others")
    func lengthOfOne() {
        let events = Log<String>()
        let requests = ["HEAD /", "POST /long", "POST /short"].map {
            "\($0) HTTP/1.1\r\n\(Self.host)content-length: 3\r\n\r\nabc"
        }
        var conversation = conversation
        conversation.limits.bodyBytes = 2
        let answer = conversation.answers(to: requests.joined()) { loop, limits in
            HTTPServer(on: loop, limits: limits) { request in
                if request.path == "/long" { request.maximumBody = 3 }
                if request.method == .post {
                    for try await piece in request.body { events.append(String(buffer: piece)) }
                }
                return .stream(length: 4, type: "a/b") { writer in
                    events.append("written")
                    try await writer.write("four")
                }
            }
        }.lines
        let head = "HTTP/1.1 200 OK/Content-Type: a/b/Content-Length: 4/"
        #expect(answer.hasPrefix("\(head)/\(head)/fourHTTP/1.1 413 ") && answer.hasSuffix("|closed"), "\(answer)")
        #expect(events.entries == ["abc", "written"])
    }
}
#endif
