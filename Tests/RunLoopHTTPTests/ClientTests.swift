#if Adapters
import RunLoopHTTP
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopTLS
import RunLoopUnix
import TLSTestSupport
import TestSupport
import Testing

@Suite("An HTTP client, simulated")
struct ClientTests {
    private let conversation = Conversation()

    /// Runs `client` beside the server with resources, and returns the log.
    private func run(
        _ options: HTTPClient.Options = HTTPClient.Options(),
        _ client: @escaping @Sendable (RunLoop, HTTPClient, Log<String>) async throws -> Void
    ) -> [String] {
        conversation.run(resources) { loop, log in
            let http = HTTPClient(on: loop, options: options)
            try await client(loop, http, log)
            http.close()
        }
    }

    @Test("answers come with their status, their fields and their body, on one connection after another")
    func requests() {
        let log = run { _, client, log in
            let hello = try await client.get("http://web/")
            log.append("\(hello.status.code) \(hello.headerFields[.contentType] ?? "")")
            log.append(String(buffer: try await hello.body.collect(upTo: 100)))
            let missing = try await client.get("http://web/nothing")
            log.append("\(missing.status.code) \(String(buffer: try await missing.body.collect(upTo: 100)))")
            let echo = try await client.send(HTTPRequest(.post, "http://web/echo"), body: .text("abc"))
            log.append(String(buffer: try await echo.body.collect(upTo: 100)))
            let head = try await client.send(HTTPRequest(.head, "http://web/"))
            log.append("\(head.status.code) \(try await head.body.collect(upTo: 100).readableBytes)")
            let empty = try await client.get("http://web/empty")
            log.append("\(empty.status.code) \(try await empty.body.collect(upTo: 100).readableBytes)")
            log.append("\(client.connectionCount)")
        }
        #expect(
            log == [
                "200 text/plain; charset=utf-8", "hello", "404 there is no /nothing\n", "abc", "200 0", "204 0", "1",
            ])
    }

    @Test("bodies stream in both directions, with trailers")
    func streams() {
        let log = run { loop, client, log in
            let body = HTTPClient.RequestBody.stream { writer in
                for _ in 0..<100 { try await writer.write([UInt8](repeating: 1, count: 10_000)) }
                writer.trailers = [.init("x-sum")!: "7"]
            }
            let count = try await client.send(HTTPRequest(.post, "http://web/pieces"), body: body)
            log.append(String(buffer: try await count.body.collect(upTo: 100)))
            let stream = try await client.get("http://web/stream")
            for try await piece in stream.body {
                log.append("\(loop.now.nanoseconds / 1_000_000_000) \(String(buffer: piece))")
            }
            log.append(stream.body.trailers.map { "\($0)" } ?? "-")
            log.append("\(client.connectionCount)")
        }
        #expect(log == ["1000000 [x-sum: 7]", "0 one", "1 two", "[x-end: yes]", "1"], "\(log)")
    }

    @Test(
        "an error of the closure that writes a body is the request's, and so is a wrong length; no connection is left")
    func brokenBodies() {
        let log = run { loop, client, log in
            let bodies: [HTTPClient.RequestBody] = [
                .stream { _ in throw Broken() }, .stream(length: 3) { try await $0.write("ab") },
                .stream(length: 3) { try await $0.write("abcd") },
            ]
            for body in bodies {
                do {
                    _ = try await client.send(HTTPRequest(.post, "http://web/echo"), body: body)
                } catch { log.append("\(error)") }
            }
            try await loop.clock.sleep(for: .seconds(1))
            log.append("\(client.connectionCount)")
        }
        let wrongLength = "\(HTTPClient.Failure.wrongLength)"
        #expect(log == ["\(HTTPClient.Failure.requestBody(Broken()))", wrongLength, wrongLength, "0"])
    }

    @Test("requests above the limit of connections wait for one, in their order")
    func pool() {
        var options = HTTPClient.Options()
        options.connectionsPerOrigin = 2
        let log = run(options) { loop, client, log in
            try await loop.withTasks { tasks in
                for number in 0..<6 {
                    tasks.start {
                        let answer = try await client.get("http://web/stream")
                        _ = try await answer.body.collect(upTo: 100)
                        log.append("\(number) at \(loop.now.nanoseconds / 1_000_000_000)")
                    }
                }
            }
            log.append("\(client.connectionCount)")
        }
        #expect(log.dropLast().sorted() == ["0 at 2", "1 at 2", "2 at 4", "3 at 4", "4 at 6", "5 at 6"])
        #expect(log.last == "2")
    }

    @Test("all requests to a server that refuses fail at once, also those above the limit of connections")
    func refused() {
        var options = HTTPClient.Options()
        options.connectionsPerOrigin = 2
        for scheme in ["http", "https"] {
            let log = run(options) { loop, client, log in
                try await loop.withTasks { tasks in
                    for _ in 0..<6 {
                        tasks.start {
                            do { _ = try await client.get("\(scheme)://web:81/") } catch HTTPClient.Failure.unreachable
                            {
                                log.append("unreachable at \(loop.now.nanoseconds / 1_000_000_000)")
                            }
                        }
                    }
                }
            }
            #expect(log == [String](repeating: "unreachable at 0", count: 6), "\(scheme)")
        }
    }

    @Test("the error for a server that refuses says so in one sentence")
    func refusedText() {
        let log = run { _, client, log in
            do { _ = try await client.get("http://web:81/") } catch { log.append("\(error)") }
        }
        #expect(log == ["the server cannot be reached: Connection refused"])
    }

    @Test("a server's wish for a pause is read in seconds, and as a date in each of its forms")
    func retryAfter() {
        let field = HTTPField.Name("x-after")!
        let (later, earlier) = (Int64(2_993_186_977), Int64(784_111_777))
        let answers: [(String, Int64?)] = [
            ("Fri, 06 Nov 2064 08:49:37 GMT", later), ("Friday, 06-Nov-64 08:49:37 GMT", later),
            ("Fri Nov  6 08:49:37 2064", later), ("Sun, 06 Nov 1994 08:49:37 GMT", earlier),
            ("Fri, 31 Apr 2064 08:49:37 GMT", nil), ("Fri, 06 Nov 2064 24:49:37 GMT", nil),
            ("Fri, 06 Nov 2064 08:49 GMT", nil), ("Fri, 06 Foo 2064 08:49:37 GMT", nil),
            ("Fri, 06 Nov 2064 08:49:37 CET", nil), ("soon", nil), ("-1", nil), ("1.5", nil), ("", nil),
        ]
        let log = conversation.run { loop, limits in
            HTTPServer(on: loop, limits: limits) { request in
                .stream(.serviceUnavailable, headerFields: [.retryAfter: request.headerFields[field] ?? ""]) { _ in }
            }
        } client: { loop, log in
            let client = HTTPClient(on: loop)
            for (text, second) in answers {
                let answer = try await client.get("http://web/", headerFields: [field: text])
                let expected = second.map { max(.zero, RunLoop.WallTime(secondsSince1970: $0) - loop.wallTime) }
                log.append(answer.retryAfter == expected ? "right" : "\(text): \(answer.retryAfter as Any)")
                if answer.headerFields[.contentType] != nil { log.append("a type") }
                _ = try await answer.body.collect(upTo: 0)
            }
            for text in ["0", "90", "99999999999999999999"] {
                let answer = try await client.get("http://web/", headerFields: [field: text])
                log.append("\(answer.retryAfter?.components.seconds ?? -1)")
                _ = try await answer.body.collect(upTo: 0)
            }
        }
        #expect(log == [String](repeating: "right", count: answers.count) + ["0", "90", "1000000000"])
    }

    @Test("an unused connection is closed after a while, and one that the server has closed is not used again")
    func idle() {
        var options = HTTPClient.Options()
        options.idleTime = .seconds(100)
        let log = run(options) { loop, client, log in
            for pause in [1, 50, 70, 200] as [Int64] {
                let answer = try await client.get("http://web/")
                _ = try await answer.body.collect(upTo: 100)
                try await loop.clock.sleep(for: .seconds(pause))
                log.append("\(client.connectionCount)")
            }
        }
        // The server closes after 60 seconds.
        #expect(log == ["1", "1", "0", "0"])
    }

    @Test("a server that does not answer, a body that stalls, and a client that goes have their times")
    func times() {
        var options = HTTPClient.Options()
        options.answerTime = .seconds(5)
        options.stallTime = .milliseconds(500)
        let log = run(options) { loop, client, log in
            do { _ = try await client.get("http://web/sleeps") } catch HTTPClient.Failure.answerTime {
                log.append("no answer at \(loop.now.nanoseconds / 1_000_000_000)")
            }
            let stream = try await client.get("http://web/stream")
            do { while try await stream.body.next() != nil {} } catch HTTPClient.Failure.stallTime {
                log.append("stalled at \(loop.now.nanoseconds / 100_000_000)")
            }
            do {
                _ = try await client.get("http://nowhere/")
            } catch HTTPClient.Failure.unreachable { log.append("unreachable") }
            log.append("\(client.connectionCount)")
        }
        #expect(log == ["no answer at 5", "stalled at 55", "unreachable", "0"])
    }

    @Test("a cancelled request closes its connection")
    func cancelled() {
        let log = run { loop, client, log in
            let task = loop.task { _ = try await client.get("http://web/sleeps") }
            try await loop.clock.sleep(for: .seconds(1))
            log.append("\(client.connectionCount)")
            task.cancel()
            if case .failure(let error) = await task.result { log.append("\(error)") }
            try await loop.clock.sleep(for: .seconds(1))
            log.append("\(client.connectionCount)")
        }
        #expect(log == ["1", "CancellationError()", "0"])
    }

    @Test("an answer that is cut off fails in its body, and one that is released closes its connection")
    func cutOff() {
        let log = run { loop, client, log in
            let broken = try await client.get("http://web/broken")
            do { log.append(String(buffer: try await broken.body.collect(upTo: 100))) } catch { log.append("\(error)") }
            do {
                _ = try await client.get("http://web/stream")  // which has more to come
            }
            try await loop.clock.sleep(for: .seconds(1))
            log.append("\(client.connectionCount)")
            let long = try await client.send(HTTPRequest(.post, "http://web/echo"), body: .text("too long"))
            do { _ = try await long.body.collect(upTo: 3) } catch { log.append("\(error)") }
        }
        #expect(log.count == 3 && log[1] == "0" && log[2] == "\(HTTPClient.Failure.bodyLimit)", "\(log)")
    }

    @Test("a request that may be repeated is, when its used connection closes; another one fails")
    func repeats() {
        let log = Log<String>()
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            network.addHost("web") { loop in
                // Each connection has one answer; the next request finds it closed.
                let server = Server(on: loop) { connection, _ in
                    let head = try await connection.read().map { String(decoding: $0.prefix(4), as: UTF8.self) } ?? "-"
                    log.append("served \(head)")
                    try await connection.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
                    if try await connection.read() != nil { log.append("dropped") }
                    connection.reset()
                }
                try server.listen(on: Endpoint("0.0.0.0", port: 80))
            }
            network.addHost("client") { loop in
                loop.task {
                    let client = HTTPClient(on: loop)
                    for method in [.get, .get, .post] as [HTTPRequest.Method] {
                        do {
                            let answer = try await client.send(HTTPRequest(method, "http://web/"))
                            log.append(String(buffer: try await answer.body.collect(upTo: 10)))
                        } catch { log.append("\(error)") }
                    }
                    client.close()
                }
            }
            simulation.advance(by: .seconds(60))
        }
        let closed = "\(HTTPClient.Failure.closed)"
        #expect(log.entries == ["served GET ", "ok", "dropped", "served GET ", "ok", "dropped", closed])
    }

    @Test("with TLS, a server that speaks HTTP/2 gets all requests on one connection")
    func secure() {
        let authority = Authority()
        let identity = authority.identity(for: "DNS:web")
        let roots = authority.roots
        let log = Log<String>()
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            network.addHost("web") { loop in
                let server = resources(loop, HTTPServer.Limits())
                try server.setTLS(identity)
                try server.listen(on: Endpoint("0.0.0.0", port: 443))
            }
            network.addHost("client") { loop in
                loop.task {
                    var options = HTTPClient.Options()
                    options.tls = try TLSClientContext(roots: roots)
                    let client = HTTPClient(on: loop, options: options)
                    do {
                        try await loop.withTasks { tasks in
                            for number in 0..<20 {
                                tasks.start {
                                    let body = HTTPClient.RequestBody.text("\(number)")
                                    let answer = try await client.send(
                                        HTTPRequest(.post, "https://web/echo"), body: body)
                                    log.append(String(buffer: try await answer.body.collect(upTo: 100)))
                                }
                            }
                        }
                        log.append("\(client.connectionCount)")
                        let broken = try await client.get("https://web/broken")
                        do { _ = try await broken.body.collect(upTo: 100) } catch { log.append("\(error)") }
                    } catch { log.append("\(error)") }
                    client.close()
                }
            }
            simulation.advance(by: .seconds(600))
        }
        #expect(Set(log.entries.prefix(20)) == Set((0..<20).map { "\($0)" }), "\(log.entries)")
        #expect(log.entries.dropFirst(20) == ["1", "\(HTTPClient.Failure.closed)"], "\(log.entries)")
    }

    @Test(
        "addresses of requests",
        arguments: [
            ("http://host", "host", 80, "/"), ("HTTPS://Host:8443/a?b#c", "host", 8_443, "/a?b"),
            ("http://[::1]:81?q", "::1", 81, "/?q"), ("http://[::1]/", "::1", 80, "/"),
        ] as [(String, String, Int, String)])
    func addresses(text: String, host: String, port: Int, path: String) throws {
        let request = try HTTPRequest(.get, text)
        #expect(request.path == path && request.authority?.lowercased().contains(host) == true)
    }

    @Test(
        "a text that is no address is an error",
        arguments: [
            "", "host", "ftp://host/", "http://", "http://host:port/", "http://host:70000/", "http://a b/",
            "http://u@h/",
        ]
    )
    func noAddress(text: String) {
        #expect(throws: HTTPClient.Failure.self) { try HTTPRequest(.get, text) }
    }
}
#endif
