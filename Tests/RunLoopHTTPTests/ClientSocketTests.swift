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

@Suite("WebSockets of an HTTP client")
struct ClientSocketTests {
    private let conversation = Conversation()
    private let events = Log<String>()

    /// A server with WebSockets, for tasks.
    private static func make(_ loop: RunLoop, _ limits: HTTPServer.Limits, _ events: Log<String>) -> HTTPServer {
        HTTPServer(on: loop, limits: limits) { request in
            switch request.path {
            case "/echo":
                let offered = request.headerFields[.secWebSocketProtocol] ?? ""
                return .webSocket(subprotocol: offered.split(separator: ", ").last.map(String.init)) { socket in
                    for try await message in socket {
                        if message == .text("bye") { return socket.close(4_000) }
                        if message == .text("fail") { throw Broken() }
                        try await socket.send(message)
                    }
                    events.append("closed \(socket.closeCode.map { "\($0)" } ?? "-")")
                }
            case "/flood":
                return .webSocket { socket in
                    defer { events.append("flood") }
                    for number in 0..<1_000 {
                        try await socket.send(.binary(ByteBuffer(repeating: UInt8(number % 256), count: 10_000)))
                        events.append("sent")
                    }
                }
            case "/deaf":
                return .webSocket { _ in try await loop.clock.sleep(for: .seconds(1_000)) }
            case "/sleeps":
                try await loop.clock.sleep(for: .seconds(1_000))
                return .text("awake")
            case "/secret": throw HTTPServer.Refusal(.unauthorized, "who?", headerFields: [.wwwAuthenticate: "Basic"])
            default: return .text("no socket")
            }
        }
    }

    private func run(
        _ options: HTTPClient.Options = HTTPClient.Options(),
        then control: @escaping @Sendable (RunLoop, HTTPServer) -> Void = { _, _ in },
        _ client: @escaping @Sendable (RunLoop, HTTPClient, Log<String>) async throws -> Void
    ) -> [String] {
        conversation.run({ [events] loop, limits in Self.make(loop, limits, events) }, then: control) { loop, log in
            let http = HTTPClient(on: loop, options: options)
            try await client(loop, http, log)
        }
    }

    @Test("messages of all sizes go both ways, and each side closes with its status")
    func echo() {
        let log = run { loop, client, log in
            let socket = try await client.webSocket("ws://web/echo", subprotocols: ["one", "two"])
            log.append("\(socket.subprotocol ?? "-") \(client.connectionCount) \(socket.isOpen)")
            for size in [0, 1, 125, 126, 65_535, 65_536, 900_000] {
                let message = WebSocket.Message.binary(ByteBuffer(repeating: 7, count: size))
                try await socket.send(message)
                log.append("\(try await socket.next() == message)")
            }
            try await socket.send("hé")
            log.append("\(try await socket.next() == .text("hé"))")
            socket.close(4_001)
            log.append("\(try await socket.next() == nil)")
            for text in ["bye", "fail"] {
                let socket = try await client.webSocket("ws://web/echo")
                try await socket.send(text)
                log.append("\(socket.subprotocol ?? "-") \(try await socket.next() == nil) \(socket.closeCode ?? 0)")
            }
            try await loop.clock.sleep(for: .seconds(2))
            log.append("\(client.connectionCount) \(socket.isOpen)")
        }
        #expect(
            log == ["two 1 true"] + [String](repeating: "true", count: 9) + ["- true 4000", "- true 1011", "0 false"])
        #expect(events.entries == ["closed 4001"])
    }

    @Test("a refusal is an error with the server's answer, and other failures of the handshake have theirs")
    func refusals() {
        var options = HTTPClient.Options()
        options.answerTime = .seconds(5)
        let log = run(options) { loop, client, log in
            for address in [
                "ws://web/secret", "ws://web/plain", "ws://web/sleeps", "ws://web:81/", "ws://nowhere/", "http://web/",
                "ws:/web", "wss://web:81/",
            ] {
                do {
                    _ = try await client.webSocket(address)
                } catch HTTPClient.Failure.notUpgraded(let head) {
                    log.append("\(head.status.code) \(head.headerFields[.wwwAuthenticate] ?? "-")")
                } catch HTTPClient.Failure.unreachable { log.append("unreachable") } catch { log.append("\(error)") }
            }
            let task = loop.task { try await client.webSocket("ws://web/sleeps").close() }
            try await loop.clock.sleep(for: .seconds(1))
            task.cancel()
            do { try await task.value } catch { log.append("\(error)") }
            let late = loop.task { try await client.webSocket("ws://web/sleeps").close() }
            try await loop.clock.sleep(for: .seconds(1))
            client.close()
            do { try await late.value } catch { log.append("\(error)") }
            do { _ = try await client.webSocket("ws://web/echo") } catch { log.append("\(error)") }
            log.append("\(client.connectionCount) \(loop.now.nanoseconds / 1_000_000_000)")
        }
        #expect(
            log == [
                "401 Basic", "200 -", "\(HTTPClient.Failure.answerTime)", "unreachable", "unreachable",
                "\(HTTPClient.Failure.address("http://web/"))", "\(HTTPClient.Failure.address("ws:/web"))",
                "unreachable", "CancellationError()", "\(HTTPClient.Failure.clientClosed)",
                "\(HTTPClient.Failure.clientClosed)", "0 7",
            ])
    }

    @Test("handlers serve a client's WebSocket as well, and its end has its reason")
    func handlers() {
        let log = run { loop, client, log in
            let socket = try await client.webSocket("ws://web/echo")
            socket.receiveHandler = { socket, message in
                log.append("\(message)")
                socket.write(.text("bye"))
            }
            socket.closeHandler = { socket, error in
                log.append("closed \(socket.closeCode ?? 0) \(error.map { "\($0)" } ?? "-")")
            }
            socket.write(.text("hello"))
        }
        #expect(log == [#"text("hello")"#, "closed 4000 -"])
    }

    @Test("a server is read only as fast as the program takes its messages")
    func backPressure() {
        let log = run { [events] loop, client, log in
            let socket = try await client.webSocket("ws://web/flood")
            try await loop.clock.sleep(for: .seconds(20))
            log.append("\(events.entries.count < 200)")
            var sum = 0
            while case .binary(let bytes)? = try await socket.next() { sum += bytes.readableBytes }
            log.append("\(sum) \(socket.closeCode ?? 0)")
        }
        #expect(log == ["true", "10000000 1000"])
    }

    @Test(
        "a server that does not read holds back the program, and is an error when its time is over, or at once",
        arguments: [true, false])
    func unread(isWritten: Bool) {
        let log = run { loop, client, log in
            let socket = try await client.webSocket("ws://web/deaf")
            let message = WebSocket.Message.binary(ByteBuffer(repeating: 1, count: 60_000))
            var count = 0
            do {
                while socket.isOpen {
                    if isWritten {
                        socket.write(message)
                        try await loop.clock.sleep(for: .milliseconds(1))
                    } else {
                        try await socket.send(message)
                    }
                    count += 1
                }
                _ = try await socket.next()
            } catch { log.append("\(error) \(loop.now.nanoseconds / 1_000_000_000)") }
            try await loop.clock.sleep(for: .seconds(1))
            log.append("\(count < 100) \(client.connectionCount)")
        }
        let failure = isWritten ? HTTPClient.Failure.unreadBytes : .stallTime
        #expect(log == ["\(failure) \(isWritten ? 0 : 30)", "true 0"])
    }

    @Test("a client that is closed says 1001, and so does a server that shuts down")
    func shutDown() {
        let log = run { loop, server in
            loop.perform(afterDelay: .seconds(20)) { server.shutDown() }
        } _: { loop, client, log in
            let other = HTTPClient(on: loop)
            let socket = try await other.webSocket("ws://web/echo")
            other.close()
            log.append("\(try await socket.next() == nil)")
            let last = try await client.webSocket("ws://web/echo")
            log.append("\(try await last.next() == nil) \(last.closeCode ?? 0)")
        }
        #expect(log == ["true", "true 1001"])
        #expect(events.entries.first == "closed 1001")
    }

    @Test("a link that is cut ends a WebSocket when its server gives no sign of life")
    func cut() {
        let log = Log<String>()
        withSimulation { [events] simulation in
            let network = SimulatedNetwork(simulation)
            let web = network.addHost("web") { loop in
                try Self.make(loop, HTTPServer.Limits(), events).listen(on: Endpoint("0.0.0.0", port: 80))
            }
            let member = network.addHost("client") { loop in
                loop.task {
                    let client = HTTPClient(on: loop)
                    let socket = try await client.webSocket("ws://web/echo")
                    do { while let message = try await socket.next() { log.append("\(message)") } } catch {
                        log.append("\(error) \(loop.now.nanoseconds / 1_000_000_000)")
                    }
                }
            }
            simulation.advance(by: .seconds(100))
            #expect(log.entries.isEmpty)
            network.cut(between: web, and: member)
            simulation.advance(by: .seconds(300))
        }
        #expect(
            log.entries.count == 1 && log.entries[0].hasPrefix("\(HTTPClient.Failure.stallTime) 1"), "\(log.entries)")
        #expect(events.entries == ["closed -"])
    }

    @Test("a WebSocket with TLS speaks HTTP/1.1, although the client's other connections speak HTTP/2")
    func tls() throws {
        let authority = Authority()
        let loop = RunLoop.current
        let server = Self.make(loop, HTTPServer.Limits(), events)
        try server.setTLS(authority.identity())
        let address = try server.listen(on: Endpoint("127.0.0.1", port: 0))
        var options = HTTPClient.Options()
        var tls = TLSOptions()
        tls.applicationProtocols = ["h2", "http/1.1"]
        options.tls = try TLSClientContext(roots: authority.roots, options: tls)
        let versions = Log<String>()
        server.hooks.completed = { versions.append($0.version) }
        try loop.run {
            let client = HTTPClient(on: loop, options: options)
            _ = try await client.get("https://localhost:\(address.port!)/").body.collect(upTo: 100)
            let socket = try await client.webSocket("wss://localhost:\(address.port!)/echo")
            try await socket.send("secret")
            #expect(try await socket.next() == .text("secret"))
            socket.close()
            #expect(try await socket.next() == nil)
            client.close()
        }
        server.close()
        loop.run(in: .default, until: loop.now + .seconds(5))
        #expect(versions.entries == ["HTTP/2.0", "HTTP/1.1"])
    }
}
#endif
