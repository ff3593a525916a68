#if Adapters
import RunLoopHTTP
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopUnix
import TestSupport
import Testing

@Suite("WebSockets of an HTTP client with servers that misbehave, simulated")
struct BadSocketServerTests {
    /// An act of the server after it has sent its bytes.
    enum End: Sendable { case stays, closes, resets }

    /// Opens a WebSocket to a server that answers with the head of a good one, in which `old` is replaced by `new`, and then sends
    /// `bytes`. All is cut after `count` bytes. Returns the messages, and the end with its time in seconds and the frame that
    /// the client has answered.
    private func outcome(
        _ old: String = "", _ new: String = "", bytes: [UInt8] = [], first count: Int = .max, _ end: End = .stays
    ) -> [String] {
        let (log, answers) = (Log<String>(), Log<String>())
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            network.addHost("good") { loop in
                let server = HTTPServer(on: loop) { _ in .webSocket { for try await _ in $0 {} } }
                try server.listen(on: Endpoint("0.0.0.0", port: 80))
            }
            network.addHost("web") { loop in
                let server = Server(on: loop) { connection, _ in
                    // The good server knows the key's answer.
                    let good = try await Connection.connect(host: "good", port: 80, on: loop)
                    try await good.write(try await connection.read() ?? [])
                    var head = String(decoding: try await good.read() ?? [], as: UTF8.self)
                    good.reset()
                    if !old.isEmpty {
                        #expect(head.contains(old), "\(head)")
                        head.replace(old, with: new)
                    }
                    try await connection.write(Array((Array(head.utf8) + bytes).prefix(count)))
                    if end == .closes { return }
                    try await loop.clock.sleep(for: .seconds(1))
                    if end == .resets { return connection.reset() }
                    while let bytes = try await connection.read() {
                        let isMasked = bytes.count > 1 && bytes[1] & 0x80 != 0
                        let status = bytes.count == 8 ? zip(bytes[6...], bytes[2...]).map { $0 ^ $1 } : []
                        answers.append("\(isMasked) \(status.reduce(0) { $0 << 8 | Int($1) })")
                    }
                }
                try server.listen(on: Endpoint("0.0.0.0", port: 80))
            }
            network.addHost("client") { loop in
                loop.task {
                    var options = HTTPClient.Options()
                    options.messageBytes = 1_000
                    let client = HTTPClient(on: loop, options: options)
                    do {
                        let socket = try await client.webSocket("ws://web/")
                        while let message = try await socket.next() { log.append("\(message)") }
                        log.append("closed \(socket.closeCode ?? 0)")
                    } catch HTTPClient.Failure.brokenWebSocket(let code) { log.append("broken \(code)") } catch {
                        log.append("\(error)".split(separator: ":").first.map(String.init) ?? "")
                    }
                    log.append("\(loop.now.nanoseconds / 1_000_000_000)")
                    try await loop.clock.sleep(for: .seconds(100))
                    log.append("\(client.connectionCount)")
                }
            }
            simulation.advance(by: .seconds(600))
        }
        return log.entries + answers.entries
    }

    private static let malformed = "the server's answer cannot be read"
    private static let closed = "\(HTTPClient.Failure.closed)"

    @Test(
        "a handshake that lies is no WebSocket",
        arguments: [
            ("Sec-WebSocket-Accept: ", "Sec-WebSocket-Accept: x"), ("Sec-WebSocket-Accept: ", "X: "),
            ("websocket", "other"), ("Upgrade: websocket\r\n", ""), ("Connection: upgrade\r\n", ""),
            ("\r\n\r\n", "\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n"),
            ("\r\n\r\n", "\r\nSec-WebSocket-Protocol: chat\r\n\r\n"), ("HTTP/1.1 101", "HTTP/1.1 2000"),
            ("HTTP", "SMTP"),
        ])
    func handshake(old: String, new: String) {
        #expect(outcome(old, new) == [Self.malformed, "0", "0"])
    }

    @Test("other answers are refusals with their status", arguments: ["200", "302", "404", "503"])
    func refusal(status: String) {
        let log = outcome("HTTP/1.1 101 Switching Protocols\r\n", "HTTP/1.1 \(status) Text\r\nContent-Length: 3\r\n")
        #expect(log.first?.hasPrefix("the server has answered \(status) ") == true && log.dropFirst() == ["0", "0"])
    }

    @Test(
        "frames that break the rules are errors, and the server is told their status",
        arguments: [
            // A text that is not UTF-8, a masked frame, an opcode and a bit that nobody knows.
            ([0x81, 1, 0xff], 1007), ([0x81, 0x81, 1, 2, 3, 4, 0x40], 1002), ([0x83, 0], 1002), ([0xc1, 1, 65], 1002),
            // Fragments without a beginning or an end, a fragmented ping, and one that is too long.
            ([0x80, 1, 65], 1002), ([0x01, 1, 65, 0x81, 1, 65], 1002), ([0x09, 0], 1002),
            ([0x89, 126, 0, 126] + [UInt8](repeating: 65, count: 126), 1002),
            // Messages above the limit: one frame, its announcement alone, and fragments.
            ([0x82, 126, 3, 233] + [UInt8](repeating: 65, count: 1_001), 1009),
            ([0x82, 127, 0, 0, 0, 1, 0, 0, 0, 0], 1009), ([0x82, 127, 255, 255, 255, 255, 255, 255, 255, 255], 1009),
            (
                [0x02, 126, 2, 88] + [UInt8](repeating: 65, count: 600) + [0x80, 126, 2, 88]
                    + [UInt8](repeating: 65, count: 600), 1009
            ),
            // Closes with half a status, and with one that nobody may send.
            ([0x88, 1, 3], 1002), ([0x88, 2, 3, 237], 1002),
        ] as [([UInt8], Int)])
    func frames(bytes: [UInt8], code: Int) {
        // The message before is delivered.
        #expect(
            outcome(bytes: [0x81, 1, 65] + bytes) == [#"text("A")"#, "broken \(code)", "0", "0", "true \(code)"])
    }

    @Test("a server's close is the end, and its status is answered")
    func closes() {
        #expect(outcome(bytes: [0x88, 2, 15, 161]) == ["closed 4001", "0", "0", "true 4001"])
        #expect(outcome(bytes: [0x88, 0]).dropLast() == ["closed 0", "0", "0"])
    }

    @Test("a server that sends nothing is asked for a sign of life, and then given up")
    func silent() {
        #expect(outcome() == ["\(HTTPClient.Failure.stallTime)", "60", "0", "true 0"])
    }

    @Test(
        "a conversation that is cut at any byte is an error, after the messages that are whole",
        arguments: [End.closes, .resets])
    func cuts(end: End) {
        let frames: [UInt8] = [0x81, 1, 65, 0x01, 1, 66, 0x80, 1, 67, 0x88, 2, 3, 232]
        var ends: Set<String> = []
        for count in 1..<160 {
            let log = outcome(bytes: frames, first: count, end)
            guard log.last == "0", let last = log.dropLast(2).last else {
                return #expect(Bool(false), "\(count): \(log)")
            }
            #expect([Self.closed, Self.malformed, "closed 1000"].contains(last), "\(count): \(log)")
            #expect(["", #"text("A")"#, #"text("A"),text("BC")"#].contains(log.dropLast(3).joined(separator: ",")))
            ends.insert(log.dropLast(2).joined(separator: ","))
        }
        #expect(
            ends.contains(#"text("A"),text("BC"),closed 1000"#)
                && ends.contains(#"text("A"),text("BC"),\#(Self.closed)"#))
    }
}
#endif
