#if Adapters
import RunLoopHTTP
import RunLoopKit
import RunLoopUnix
import TestSupport
import Testing

@Suite("WebSockets with handlers, simulated")
struct SocketHandlerTests {
    private let conversation = Conversation()
    private let events = Log<String>()

    /// Runs a server whose exchanges become WebSockets, which `serve` gives handlers, and a client.
    private func run(
        limits: HTTPServer.Limits = HTTPServer.Limits(), subprotocol: String? = nil,
        then control: @escaping @Sendable (RunLoop, HTTPServer) -> Void = { _, _ in },
        _ serve: @escaping @Sendable (RunLoop, WebSocket, Log<String>) -> Void,
        client: @escaping @Sendable (RunLoop, Log<String>) async throws -> Void
    ) -> [String] {
        var conversation = conversation
        conversation.limits = limits
        return conversation.run(
            { [events] loop, limits in
                HTTPServer(on: loop, limits: limits) { exchange in
                    exchange.closeHandler = { _, error in events.append("exchange \(error.map { "\($0)" } ?? "-")") }
                    guard let socket = exchange.acceptWebSocket(subprotocol: subprotocol) else {
                        return events.append("no socket, \(exchange.isOpen)")
                    }
                    socket.closeHandler = { socket, error in
                        let code = socket.closeCode.map { "\($0)" } ?? "-"
                        events.append("closed \(code) \(error.map { "\($0 as! HTTPServer.ExchangeError)" } ?? "-")")
                    }
                    serve(loop, socket, events)
                }
            }, then: control, client: client)
    }

    private static let cut = "\(HTTPServer.ExchangeError.closed)"

    @Test("messages reach the handler, whole or in fragments; pings are answered, and the client's close ends both")
    func echo() {
        let log = run(subprotocol: "echo") { _, socket, _ in
            socket.receiveHandler = { socket, message in socket.write(message) }
        } client: { loop, log in
            let client = try await FrameSocket(loop)
            log.append("\(try await client.head().contains("Sec-WebSocket-Protocol: echo"))")
            try await client.send("hé")
            log.append(try await client.next())
            try await client.send(1, Array("one ".utf8), isFinal: false)
            try await client.send(9, Array("ping".utf8))
            try await client.send(0, Array("two".utf8))
            for _ in 0..<2 { log.append(try await client.next()) }
            try await client.send(8, [3, 233])
            for _ in 0..<2 { log.append(try await client.next()) }
        }
        #expect(log == ["true", "1 hé", "10 ping", "1 one two", "8 1001", "end"])
        #expect(events.entries == ["exchange -", "closed 1001 -"])
        #expect(conversation.completions.entries.map { $0.status?.code } == [101])
    }

    @Test("the program closes with its status, and a client that goes or breaks a rule is an error of the handler")
    func ends() {
        let log = run { _, socket, _ in
            socket.receiveHandler = { socket, message in
                socket.close(4_000)
                socket.close()
                socket.write(message)
            }
        } client: { loop, log in
            for opcode in [1, 3] as [UInt8] {
                let client = try await FrameSocket(loop)
                _ = try await client.head()
                try await client.send(opcode, [65])
                log.append(try await client.next())
                if opcode == 1 { try await client.send(8, [3, 232]) }
                log.append(try await client.next())
                try await loop.clock.sleep(for: .seconds(2))
            }
            let client = try await FrameSocket(loop)
            _ = try await client.head()
            client.peer.reset()
        }
        #expect(log == ["8 4000", "end", "8 1002", "end"])
        #expect(
            events.entries == [
                "exchange -", "closed - -", "exchange -", "closed - \(Self.cut)", "exchange -", "closed - \(Self.cut)",
            ])
    }

    @Test("a request that asks for no WebSocket is answered with 426, and an answered exchange has none")
    func declined() {
        let log = run { _, _, _ in
        } client: { loop, log in
            let peer = try await Connection.connect(host: "web", port: 80, on: loop)
            try await peer.write("GET / HTTP/1.1\r\nhost: web\r\n\r\n")
            log.append(String(decoding: try await peer.read()?.prefix(12) ?? [], as: UTF8.self))
        }
        #expect(log == ["HTTP/1.1 426"])
        #expect(events.entries == ["exchange -", "no socket, false"])
    }

    @Test("an exchange may become a WebSocket later")
    func later() {
        let log = conversation.run { [events] loop, limits in
            HTTPServer(on: loop, limits: limits) { exchange in
                loop.perform(afterDelay: .seconds(2)) {
                    let socket = exchange.acceptWebSocket()
                    events.append("\(socket != nil)")
                    socket?.write(.text("welcome"))
                }
            }
        } client: { loop, log in
            let client = try await FrameSocket(loop)
            _ = try await client.head()
            log.append("\(try await client.next()) \(loop.now.nanoseconds / 1_000_000_000)")
        }
        #expect(log == ["1 welcome 2"])
        #expect(events.entries == ["true"])
    }

    @Test("messages stay with the client while reading is paused, and all come before the end")
    func pause() {
        let log = run { loop, socket, events in
            var count = 0
            socket.receiveHandler = { socket, _ in
                count += 1
                if count == 1 {
                    socket.pauseReading()
                    loop.perform(afterDelay: .seconds(100)) { socket.resumeReading() }
                }
                if count == 600 { events.append("all at \(loop.now.nanoseconds / 1_000_000_000)") }
            }
        } client: { loop, log in
            let client = try await FrameSocket(loop)
            _ = try await client.head()
            let sent = Log<Int>()
            let writer = loop.task {
                for number in 0..<600 {
                    try await client.send(2, [UInt8](repeating: 65, count: 10_000))
                    sent.append(number)
                }
                try await client.send(8, [3, 232])
            }
            try await loop.clock.sleep(for: .seconds(50))
            log.append("\(sent.entries.count < 300)")
            try await writer.value
            var frame = ""
            repeat { frame = try await client.next() } while frame.hasPrefix("9")
            log.append(frame)
        }
        #expect(log == ["true", "8 1000"])
        #expect(events.entries == ["exchange -", "all at 100", "closed 1000 -"])
    }

    @Test("messages that came before a close are delivered after a pause, and then the end")
    func pausedEnd() {
        _ = run { loop, socket, events in
            socket.pauseReading()
            socket.receiveHandler = { _, message in events.append("\(message == .text("last"))") }
            loop.perform(afterDelay: .seconds(10)) {
                events.append("open \(socket.isOpen)")
                socket.resumeReading()
            }
        } client: { loop, _ in
            let client = try await FrameSocket(loop)
            _ = try await client.head()
            try await client.send("last")
            try await client.send(8, [3, 232])
            _ = try await client.next()
        }
        #expect(events.entries == ["exchange -", "open false", "true", "closed 1000 -"])
    }

    @Test("a program writes as long as the client reads, and goes on when it is told")
    func drain() {
        let log = run { loop, socket, events in
            var left = 100
            let write = { (socket: WebSocket) in
                while left > 0, socket.isWritable {
                    left -= 1
                    socket.write(.binary(ByteBuffer(repeating: 65, count: 60_000)))
                }
                if left == 0 { socket.close() }
            }
            socket.drainHandler = write
            loop.perform(afterDelay: .seconds(1)) {
                write(socket)
                events.append("\(left > 0)")
            }
        } client: { loop, log in
            let client = try await FrameSocket(loop)
            _ = try await client.head()
            client.peer.pauseReading()
            try await loop.clock.sleep(for: .seconds(10))
            client.peer.resumeReading()
            var count = 0
            while try await client.next().hasPrefix("2 ") { count += 1 }
            log.append("\(count)")
            try await client.send(8, [3, 232])
        }
        #expect(log == ["100"])
        #expect(events.entries == ["exchange -", "true", "closed - -"])
    }

    @Test(
        "a client that does not read is closed at a further message, or when its time is over",
        arguments: [true, false])
    func unread(isWritten: Bool) {
        var limits = HTTPServer.Limits()
        limits.stallTime = .seconds(5)
        _ = run(limits: limits) { loop, socket, _ in
            loop.perform(afterDelay: .seconds(1)) {
                for _ in 0..<100 where isWritten || socket.isWritable {
                    socket.write(.text(String(repeating: "x", count: 60_000)))
                }
            }
        } client: { loop, log in
            let client = try await FrameSocket(loop)
            _ = try await client.head()
            client.peer.pauseReading()
            try await loop.clock.sleep(for: .seconds(20))
            client.peer.reset()
        }
        #expect(events.entries == ["exchange -", "closed - \(Self.cut)"])
        #expect(conversation.completions.entries.map(\.limit) == [isWritten ? .unreadBytes : .stallTime])
    }

    @Test("a silent client is asked and then closed, and a server that shuts down says 1001")
    func times() {
        let log = run { loop, server in
            loop.perform(afterDelay: .seconds(150)) { server.shutDown() }
        } _: { _, _, _ in
        } client: { loop, log in
            for _ in 0..<2 {
                let client = try await FrameSocket(loop)
                _ = try await client.head()
                for _ in 0..<2 {
                    let frame = try await client.next()
                    log.append("\(frame) \(loop.now.nanoseconds / 1_000_000_000)")
                    if frame.hasPrefix("8") { try await client.send(8, [3, 233]) }
                }
                try await loop.clock.sleep(for: .seconds(2))
            }
        }
        #expect(log == ["9  60", "end 120", "8 1001 150", "end 150"])
        #expect(events.entries == ["exchange -", "closed - \(Self.cut)", "exchange -", "closed - -"])
    }
}
#endif
