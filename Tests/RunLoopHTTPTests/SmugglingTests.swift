#if Adapters
import RunLoopHTTP
import RunLoopKit
import RunLoopUnix
import TestSupport
import Testing

@Suite("Requests that two readers might read in different ways, simulated")
struct SmugglingTests {
    private static let long = String(repeating: "x", count: 20_000)
    private static let chunked = "POST /echo HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n"
    private static let post = "POST /echo HTTP/1.1\r\nhost: a\r\n"
    private static let end = "3\r\nabc\r\n0\r\n\r\n"

    /// A request behind the first one, which must not be read after an error.
    private static let next = "GET /next HTTP/1.1\r\nhost: web\r\n\r\n"

    @Test(
        "a request that is not one is refused, the connection closes, and nothing behind it is read",
        arguments: [
            // Lines.
            ("GET / HTTP/1.1\nhost: a\n\n", 400), ("GET / HTTP/1.1\r\nhost: a\rx: y\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nhost: a\r\nx: y\r\r\n\r\n", 400), ("nonsense\r\n\r\n", 400),
            ("GET / HTTP/1.1 x\r\nhost: a\r\n\r\n", 400), ("GET / HTTP/2.0\r\nhost: a\r\n\r\n", 400),
            ("GET / HTTP/1.2\r\nhost: a\r\n\r\n", 400), ("GET / http/1.1\r\nhost: a\r\n\r\n", 400),
            ("GET /\r\n\r\n", 400), ("GET\t/ HTTP/1.1\r\nhost: a\r\n\r\n", 400),
            (" GET / HTTP/1.1\r\nhost: a\r\n\r\n", 400), ("get / HTTP/1.1\r\nhost: a\r\n\r\n", 400),
            ("GET foo HTTP/1.1\r\nhost: a\r\n\r\n", 400), ("GET /a b HTTP/1.1\r\nhost: a\r\n\r\n", 400),
            ("GET /\u{0} HTTP/1.1\r\nhost: a\r\n\r\n", 400),
            // Fields.
            ("GET / HTTP/1.1\r\nhost: a\r\nx: a\r\n b\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\n host: a\r\n\r\n", 400), ("GET / HTTP/1.1\r\nhost: a\r\nx : y\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nhost: a\r\n: y\r\n\r\n", 400), ("GET / HTTP/1.1\r\nhost: a\r\nx\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nhost: a\r\nx y: z\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nhost: a\r\nx: a\u{0}b\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nhost: a\r\nx: \(long)\r\n\r\n", 431),
            ("GET /\(long) HTTP/1.1\r\nhost: a\r\n\r\n", 431),
            // Hosts.
            ("GET / HTTP/1.1\r\n\r\n", 400), ("GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nhost: a b\r\n\r\n", 400), ("GET / HTTP/1.1\r\nhost: a/b\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nhost: a@b\r\n\r\n", 400), ("GET http://a@b/ HTTP/1.1\r\nhost: a\r\n\r\n", 400),
            // Lengths.
            ("\(post)content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n\(end)", 400),
            ("\(post)content-length: 3\r\ncontent-length: 4\r\n\r\nabc", 400),
            ("\(post)content-length: 3\r\ncontent-length: 3\r\n\r\nabc", 400),
            ("\(post)content-length: 3, 3\r\n\r\nabc", 400), ("\(post)content-length: 3 3\r\n\r\nabc", 400),
            ("\(post)content-length : 3\r\n\r\nabc", 400), ("\(post)content-length: +3\r\n\r\nabc", 400),
            ("\(post)content-length: -3\r\n\r\nabc", 400), ("\(post)content-length: 0x3\r\n\r\nabc", 400),
            ("\(post)content-length:\r\n\r\nabc", 400), ("\(post)content-length: 99999999999999999999\r\n\r\nabc", 400),
            // Codings.
            ("\(post)transfer-encoding: gzip, chunked\r\n\r\n\(end)", 501),
            ("\(post)transfer-encoding: xchunked\r\n\r\n\(end)", 501),
            ("\(post)transfer-encoding: chunked, chunked\r\n\r\n\(end)", 400),
            ("\(chunked)transfer-encoding: chunked\r\n\r\n\(end)", 400),
            ("\(post)transfer-encoding: \u{b}chunked\r\n\r\n\(end)", 400),
            ("\(post)transfer-encoding\r\n\r\n\(end)", 400),
            ("\(post)transfer-encoding: identity\r\ncontent-length: 3\r\n\r\nabc", 400),
            ("POST /echo HTTP/1.0\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n\(end)", 400),
            // Chunks.
            ("\(chunked)\r\n3 \r\nabc\r\n0\r\n\r\n", 400), ("\(chunked)\r\n0x3\r\nabc\r\n0\r\n\r\n", 400),
            ("\(chunked)\r\n+3\r\nabc\r\n0\r\n\r\n", 400), ("\(chunked)\r\n-3\r\nabc\r\n0\r\n\r\n", 400),
            ("\(chunked)\r\nx\r\nabc\r\n0\r\n\r\n", 400), ("\(chunked)\r\n3\nabc\n0\n\n", 400),
            ("\(chunked)\r\n3\r\nabcd\r\n0\r\n\r\n", 400), ("\(chunked)\r\n3;a=\"\n\"\r\nabc\r\n0\r\n\r\n", 400),
            ("\(chunked)\r\nfffffffffffffffff\r\nabc\r\n0\r\n\r\n", 400),
        ])
    func refused(request: String, status: Int) {
        let conversation = Conversation()
        let answer = conversation.answers(to: request + Self.next, resources).lines
        #expect(
            (answer.hasPrefix("HTTP/1.1 \(status) ") || answer.hasPrefix("HTTP/1.0 \(status) "))
                && answer.hasSuffix("|closed"), "\(answer)")
        #expect(answer.contains("/Connection: close/") && answer.split(separator: "HTTP/1.").count == 1, "\(answer)")
        #expect(conversation.completions.entries.map { $0.status?.code } == [status])
    }

    @Test(
        "a request that has one reading is read so, and the next one after it",
        arguments: [
            ("\(chunked)\r\n3;a=b\r\nabc\r\n0\r\n\r\n", "abc"),
            ("\(post)transfer-encoding: Chunked\r\n\r\n\(end)", "abc"),
            ("\(post)transfer_encoding: chunked\r\ncontent-length: 3\r\n\r\nabc", "abc"),
            ("\(post)content-length: 3 \r\n\r\nabc", "abc"), ("\r\nGET / HTTP/1.1\r\nhost: a\r\n\r\n", "hello"),
            ("GET http://other/?q HTTP/1.1\r\nhost: a\r\n\r\n", "hello"),
            ("GET HTTP://other HTTP/1.1\r\nhost: a\r\n\r\n", "hello"),
            ("GET / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\nabc", "hello"),
            ("GET / HTTP/1.1\r\nhost: [::1]:80\r\n\r\n", "hello"),
        ])
    func served(request: String, body: String) {
        let conversation = Conversation()
        let answer = conversation.answers(to: request + Self.next, resources).lines
        #expect(answer.contains("//\(body)HTTP/1.1 404 ") && answer.hasSuffix("there is no /next\n|open"), "\(answer)")
    }

    @Test("a target with a host is for that host, whatever the field says")
    func absolute() {
        let hosts = Log<String>()
        let conversation = Conversation()
        _ = conversation.answers(to: "GET http://other:81/a?b HTTP/1.1\r\nhost: a\r\n\r\n") { loop, limits in
            HTTPServer(on: loop, limits: limits) { request in
                hosts.append("\(request.head.authority ?? "-") \(request.path) \(request.query ?? "-")")
                return .text("")
            }
        }
        #expect(hosts.entries == ["other:81 /a b"])
    }

    @Test("a head that never ends, and extensions of chunks that never end, take no memory and have their time")
    func endless() {
        for (beginning, status) in [("GET / HTTP/1.1\r\nx: ", 431), ("GET /", 431), ("\(Self.chunked)\r\n3;", 408)] {
            let conversation = Conversation()
            let log = conversation.run(resources) { loop, log in
                let peer = try await Connection.connect(host: "web", port: 80, on: loop)
                let writer = loop.task {
                    try await peer.write(beginning)
                    while true {
                        try await peer.write(String(repeating: "x", count: 10_000))
                        try await loop.clock.sleep(for: .milliseconds(100))
                    }
                }
                log.append(String(decoding: try await peer.read()?.prefix(12) ?? [], as: UTF8.self))
                writer.cancel()
            }
            #expect(log == ["HTTP/1.1 \(status)"], "\(beginning)")
        }
    }
}
#endif
