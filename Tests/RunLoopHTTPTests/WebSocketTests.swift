#if Adapters
import RunLoopHTTP
import RunLoopKit
import RunLoopUnix
import TestSupport
import Testing

@Suite("WebSockets of an HTTP server, simulated")
struct WebSocketTests {
    private let conversation = Conversation()
    private let events = Log<String>()

    private func run(
        then control: @escaping @Sendable (RunLoop, HTTPServer) -> Void = { _, _ in },
        _ client: @escaping @Sendable (RunLoop, Log<String>) async throws -> Void
    ) -> [String] {
        conversation.run(
            { [events] loop, limits in
                HTTPServer(on: loop, limits: limits) { request in
                    switch request.path {
                    case "/socket":
                        return .webSocket { socket in
                            for try await message in socket {
                                if message == .text("bye") { return socket.close(4_000) }
                                if message == .text("fail") { throw Broken() }
                                try await socket.send(message)
                            }
                            events.append("closed \(socket.closeCode.map { "\($0)" } ?? "-")")
                        }
                    case "/slow":
                        return .webSocket { socket in
                            defer { events.append("cancelled \(loop.now.nanoseconds / 1_000_000_000)") }
                            try await loop.clock.sleep(for: .seconds(1_000))
                        }
                    case "/body":
                        return .text(String(buffer: try await request.body.collect(upTo: 10)) + "plain")
                    default: throw HTTPServer.Refusal(.notFound, "nothing here")
                    }
                }
            }, then: control, client: client)
    }

    @Test("messages are echoed, whole or in fragments, and pings are answered")
    func echo() {
        let log = run { loop, log in
            let client = try await FrameSocket(loop)
            let head = try await client.head()
            log.append("\(head.hasPrefix("HTTP/1.1 101 ")) \(head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="))")
            try await client.send("hé")
            log.append(try await client.next())
            try await client.send(1, Array("one ".utf8), isFinal: false)
            try await client.send(9, Array("ping".utf8))
            try await client.send(0, Array("two".utf8))
            log.append(try await client.next())
            log.append(try await client.next())
            try await client.send(2, [65, 66])
            log.append(try await client.next())
            try await client.send(8, [3, 232])
            log.append(try await client.next())
            log.append(try await client.next())
        }
        #expect(log == ["true true", "1 hé", "10 ping", "1 one two", "2 AB", "8 1000", "end"])
        #expect(events.entries == ["closed 1000"])
        #expect(conversation.completions.entries.map { $0.status?.code } == [101])
    }

    @Test("a request that names no upgrade in its field Connection does not become a WebSocket")
    func unconnected() {
        let answer = conversation.answers(
            to: FrameSocket.handshake("/").replacing("connection: Upgrade\r\n", with: "")
                + "GET / HTTP/1.1\r\nhost: web\r\n\r\n"
        ) { loop, limits in
            HTTPServer(on: loop, limits: limits) { _ in .webSocket { for try await _ in $0 {} } }
        }
        let ends = "\r\n\r\nthis resource speaks WebSocket\n|closed"
        #expect(answer.hasPrefix("HTTP/1.1 426 ") && answer.hasSuffix(ends), "\(answer)")
    }

    @Test(
        "frames that break the rules close the connection with their status",
        arguments: [
            (1, [0xff], true, "8 1007"), (3, [], true, "8 1002"), (1, [65], false, "8 1002"), (0, [65], true, "8 1002"),
        ] as [(UInt8, [UInt8], Bool, String)])
    func broken(opcode: UInt8, bytes: [UInt8], isMasked: Bool, expected: String) {
        let log = run { loop, log in
            let client = try await FrameSocket(loop)
            _ = try await client.head()
            try await client.send(opcode, bytes, isMasked: isMasked)
            log.append(try await client.next())
            log.append(try await client.next())
        }
        #expect(log == [expected, "end"])
    }

    @Test("a message above the limit is answered with 1009")
    func large() {
        var conversation = conversation
        conversation.limits.messageBytes = 1_000
        let log = conversation.run { loop, limits in
            HTTPServer(on: loop, limits: limits) { _ in .webSocket { for try await _ in $0 {} } }
        } client: { loop, log in
            for isFinal in [true, false] {
                let client = try await FrameSocket(loop)
                _ = try await client.head()
                for opcode in [1, 0, 0] as [UInt8] {
                    try? await client.send(opcode, [UInt8](repeating: 65, count: 600), isFinal: isFinal && opcode == 1)
                    if isFinal { try? await client.send(1, [UInt8](repeating: 65, count: 1_001)) }
                }
                log.append(try await client.next())
            }
        }
        #expect(log == ["8 1009", "8 1009"])
    }

    @Test("the program closes by a call, by its end, and with 1011 by an error")
    func ends() {
        let log = run { loop, log in
            for text in ["bye", "fail"] {
                let client = try await FrameSocket(loop)
                _ = try await client.head()
                try await client.send(text)
                log.append(try await client.next())
                try await client.send(8, [3, 232])
                log.append(try await client.next())
            }
        }
        #expect(log == ["8 4000", "end", "8 1011", "end"])
        #expect(conversation.failures.entries == ["Broken()"])
    }

    @Test("the task of a client that goes is cancelled, and a silent client is asked and then closed")
    func gone() {
        let log = run { loop, log in
            let client = try await FrameSocket(loop, "/slow")
            _ = try await client.head()
            try await loop.clock.sleep(for: .seconds(5))
            client.peer.reset()
            try await loop.clock.sleep(for: .seconds(1))
            let silent = try await FrameSocket(loop)
            _ = try await silent.head()
            let start = loop.now
            log.append(try await silent.next())
            log.append(try await silent.next())
            log.append("\((loop.now - start).components.seconds)")
        }
        #expect(log == ["9 ", "end", "120"])
        #expect(events.entries == ["cancelled 5", "closed -"])
    }

    @Test("a request for a WebSocket that the program answers otherwise is a request, and the other way round")
    func declined() {
        let log = run { loop, log in
            for path in ["/nothing", "/body"] {
                let client = try await FrameSocket(loop, path)
                log.append(String(try await client.head().prefix(12)))
            }
            let peer = try await Connection.connect(host: "web", port: 80, on: loop)
            try await peer.write("GET /socket HTTP/1.1\r\nhost: web\r\n\r\n")
            log.append(String(decoding: try await peer.read()?.prefix(12) ?? [], as: UTF8.self))
            let badVersion = try await Connection.connect(host: "web", port: 80, on: loop)
            let handshake = FrameSocket.handshake("/socket").replacing("version: 13", with: "version: 12")
            try await badVersion.write(handshake)
            log.append(String(decoding: try await badVersion.read()?.prefix(12) ?? [], as: UTF8.self))
        }
        #expect(log == ["HTTP/1.1 404", "HTTP/1.1 200", "HTTP/1.1 426", "HTTP/1.1 426"])
    }

    @Test("a server that shuts down says 1001, and a client that does not read holds back the program")
    func shutDown() {
        let log = run { loop, server in
            loop.perform(afterDelay: .seconds(2)) { server.shutDown() }
        } _: { loop, log in
            let client = try await FrameSocket(loop)
            _ = try await client.head()
            log.append(try await client.next())
            try await client.send(8, [3, 233])
            log.append(try await client.next())
        }
        #expect(log == ["8 1001", "end"])
    }

    @Test(
        "a client that does not read is closed at a further message, or when its time is over; pings wait meanwhile",
        arguments: [true, false])
    func unread(isWritten: Bool) {
        var conversation = conversation
        conversation.limits.stallTime = .seconds(5)
        let left = Log<Int64>()
        let log = conversation.run { loop, limits in
            HTTPServer(on: loop, limits: limits) { _ in
                .webSocket { socket in
                    defer { left.append((loop.now.nanoseconds + 999_999_999) / 1_000_000_000) }
                    let message = WebSocket.Message.binary(ByteBuffer(repeating: 65, count: 60_000))
                    while true {
                        if isWritten { socket.write(message) } else { try await socket.send(message) }
                        try await loop.clock.sleep(for: .milliseconds(10))
                    }
                }
            }
        } client: { loop, log in
            let client = try await FrameSocket(loop)
            _ = try await client.head()
            client.peer.pauseReading()
            for _ in 0..<10 {
                try? await client.send(9, [1])
                try await loop.clock.sleep(for: .seconds(1))
            }
            log.append("\(client.peer.isOpen)")
            client.peer.reset()
        }
        let notes = conversation.completions.entries
        #expect(notes.map(\.limit) == [isWritten ? .unreadBytes : .stallTime], "\(log)")
        #expect(notes.map(\.status?.code) == [101] && notes.map(\.isCutOff) == [true])
        #expect(left.entries.count == 1 && left.entries[0] <= (isWritten ? 2 : 7), "\(left.entries)")
    }

    @Test("a client that does not read holds back the program, and its messages are not read")
    func backPressure() {
        let log = run { loop, log in
            let client = try await FrameSocket(loop)
            _ = try await client.head()
            client.peer.pauseReading()
            let sent = Log<Int>()
            let writer = loop.task {
                while true {
                    try await client.send(2, [UInt8](repeating: 65, count: 10_000))
                    sent.append(10_000)
                }
            }
            try await loop.clock.sleep(for: .seconds(30))
            log.append("\(sent.entries.count < 300)")
            writer.cancel()
            client.peer.reset()
        }
        #expect(log == ["true"])
    }
}
#endif
