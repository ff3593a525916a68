import RunLoopUnix
import Testing

@Suite("Attacks with HTTP/2", .timeLimit(.minutes(5)))
struct HTTP2AttackTests {
    private let web: WebUnderTest

    init() throws {
        web = try WebUnderTest(limits: #"{"stallSeconds": 1}"#)
    }

    /// Sends frames until the daemon closes, or `times` times; returns the error of the end.
    private func flood(_ times: Int, _ frame: (RawHTTP2, Int) -> Bool) throws -> UInt32? {
        let client = try RawHTTP2(port: web.port)
        client.answersPings = false
        let before = web.memory
        for number in 0..<times { if !frame(client, number) { break } }
        client.client.endOutput()
        let error = client.rest().last { $0.type == RawHTTP2.goAway }?.error
        #expect(web.memory < before + 20_000_000, "\(before) grew to \(web.memory)")
        #expect(try output(of: "curl", ["-s", "--http2-prior-knowledge", web.url("/")]).failure == nil)
        return error
    }

    @Test("rapid reset")
    func rapidReset() throws {
        let error = try flood(10_000) { client, number in
            let stream = UInt32(2 * number + 1)
            return client.client.send(
                RawHTTP2.bytes(RawHTTP2.headers, RawHTTP2.endHeaders | RawHTTP2.endStream, stream, RawHTTP2.head())
                    + RawHTTP2.bytes(RawHTTP2.reset, 0, stream, [0, 0, 0, 8]))
        }
        #expect(error == RawHTTP2.enhanceYourCalm)
    }

    @Test("resets that the daemon is provoked to send")
    func provokedResets() throws {
        let error = try flood(10_000) { client, number in
            let stream = UInt32(2 * number + 1)
            // An increment of zero is an error of the stream.
            return client.client.send(
                RawHTTP2.bytes(RawHTTP2.headers, RawHTTP2.endHeaders, stream, RawHTTP2.head("POST", "/echo"))
                    + RawHTTP2.bytes(RawHTTP2.windowUpdate, 0, stream, [0, 0, 0, 0]))
        }
        #expect(error != nil && error != 0)
    }

    @Test("floods of pings, settings, and data without bytes")
    func floods() throws {
        let ping = try flood(100_000) { client, _ in client.send(RawHTTP2.ping, 0, 0, [1, 2, 3, 4, 5, 6, 7, 8]) }
        #expect(ping == RawHTTP2.enhanceYourCalm)
        let settings = try flood(100_000) { client, _ in client.send(RawHTTP2.settings) }
        #expect(settings == RawHTTP2.enhanceYourCalm)
        let data = try flood(100_000) { client, number in
            if number == 0 { client.send(RawHTTP2.headers, RawHTTP2.endHeaders, 1, RawHTTP2.head("POST", "/echo")) }
            return client.send(RawHTTP2.data, 0, 1)
        }
        #expect(data == RawHTTP2.enhanceYourCalm)
    }

    @Test("a head that never ends")
    func continuations() throws {
        let error = try flood(100_000) { client, number in
            if number == 0 { client.send(RawHTTP2.headers, 0, 1, RawHTTP2.head()) }
            return client.send(RawHTTP2.continuation, 0, 1, [0, 1, 0x78, 1, 0x78])
        }
        #expect(error != nil && error != 0)
    }

    @Test("a head that is too large")
    func largeHead() throws {
        let error = try flood(1) { client, _ in
            let value = [UInt8](repeating: 0x78, count: 16_000)
            // A literal of 16,000 bytes, and a second one.
            let field = [0, 1, 0x78, 0x7f, 0x81, 0x7c] + value
            client.send(RawHTTP2.headers, 0, 1, RawHTTP2.head() + field)
            return client.send(RawHTTP2.continuation, RawHTTP2.endHeaders, 1, field)
        }
        #expect(error != nil && error != 0)
    }

    @Test("more streams at a time than there may be are refused")
    func streams() throws {
        let client = try RawHTTP2(port: web.port)
        for number in 0...100 {
            client.send(RawHTTP2.headers, RawHTTP2.endHeaders, UInt32(2 * number + 1), RawHTTP2.head("POST", "/echo"))
        }
        var refusal = client.next()
        while let frame = refusal, frame.error == nil { refusal = client.next() }
        #expect(refusal?.type == RawHTTP2.reset && refusal?.stream == 201 || refusal?.type == RawHTTP2.goAway)
        try web.stop()
    }

    @Test("a connection without a stream sends GOAWAY, and ends even if the client is silent")
    func silent() throws {
        web.directory.write(#"{"idleSeconds": 0.5}"#.utf8, to: "limits")
        try web.child.kill(.hangUp)
        eventually { web.log.contains("SIGHUP") }
        var error: UInt32?
        // The first may come before the limit.
        while error == nil {
            let client = try RawHTTP2(port: web.port)
            client.answersPings = false
            error = client.rest().last { $0.type == RawHTTP2.goAway }?.error
        }
        #expect(error == 0)
        try web.stop()
    }

    @Test("streams whose windows are closed are reset, and take little memory")
    func closedWindows() throws {
        web.directory.write([UInt8](repeating: 1, count: 10_000_000), to: "uploads/large")
        _ = try output(of: "curl", ["-s", web.url("/")])
        let before = web.memory
        let client = try RawHTTP2(port: web.port)
        // The initial window is zero.
        client.send(RawHTTP2.settings, 0, 0, [0, 4, 0, 0, 0, 0])
        for number in 0..<100 {
            client.send(
                RawHTTP2.headers, RawHTTP2.endHeaders | RawHTTP2.endStream, UInt32(2 * number + 1),
                RawHTTP2.head("GET", "/uploads/large"))
        }
        var resets = 0
        while resets < 100, let frame = client.next() { if frame.type == RawHTTP2.reset { resets += 1 } }
        #expect(resets == 100)
        #expect(web.memory < before + 40_000_000, "\(before) grew to \(web.memory)")
        try web.stop()
    }
}
