#if Adapters
import RunLoopHTTP
import RunLoopKit
import RunLoopUnix
import TestSupport
import Testing

@Suite("Limits of an HTTP server, simulated")
struct LimitTests {
    private static let host = "host: web\r\n"
    @Test("a body above the limit is answered with 413, announced or not")
    func longBodies() {
        let chunk = "1000\r\n" + String(repeating: "x", count: 0x1000) + "\r\n"
        let chunks = "transfer-encoding: chunked\r\n\r\n" + String(repeating: chunk, count: 30)
        for body in ["content-length: 100001\r\n\r\n", chunks] {
            let conversation = Conversation()
            let answer = conversation.answers(to: "POST /echo HTTP/1.1\r\n\(Self.host)\(body)", resources).lines
            #expect(answer.hasPrefix("HTTP/1.1 413 ") && answer.hasSuffix("|closed"), "\(answer)")
            #expect(conversation.completions.entries.map(\.limit) == [.bodyBytes])
        }
    }

    @Test(
        "each phase has its time",
        arguments: [
            ("", "|closed", 10), ("GET / HTTP/1.1\r\nx", "HTTP/1.1 408 ", 10),
            ("GET / HTTP/1.1\r\nhost: a\r\n\r\n", "HTTP/1.1 200 ", 20),
            ("POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\nabc", "HTTP/1.1 408 ", 5),
            ("GET /sleeps HTTP/1.1\r\nhost: a\r\n\r\n", "HTTP/1.1 503 ", 15),
        ])
    func times(request: String, beginning: String, seconds: Int64) {
        var conversation = Conversation()
        conversation.limits.idleTime = .seconds(20)
        conversation.limits.stallTime = .seconds(5)
        conversation.limits.answerTime = .seconds(15)
        let log = conversation.run(resources) { loop, log in
            let isAnswered = request.hasPrefix("GET / HTTP/1.1\r\nhost")
            let peer = try await Connection.connect(host: "web", port: 80, on: loop)
            try await peer.write(request)
            var received: [UInt8] = []
            while let bytes = try await peer.read() {
                received += bytes
                if !isAnswered { log.append("\(loop.now.nanoseconds / 1_000_000_000)") }
            }
            log.append(String(decoding: received, as: UTF8.self) + "|closed")
            log.append("\(loop.now.nanoseconds / 1_000_000_000)")
        }
        #expect(log.dropLast().last?.hasPrefix(beginning) == true, "\(log)")
        #expect(log.first.flatMap { Int64($0) } ?? log.last.flatMap { Int64($0) } == seconds, "\(log)")
    }

    @Test(
        "a loop that was blocked reads what has come meanwhile, and gives its client as much time as it was late",
        arguments: ["", "GET / HTTP/1.1\r\n"], [(11_000, "200"), (13_000, "200"), (14_500, "408")])
    func lateLoop(beginning: String, rest: (milliseconds: Int, status: String)) {
        var conversation = Conversation()
        // The time of the head is over at 10 seconds, and the loop comes to it at 12.
        conversation.block = (.seconds(5), .seconds(7))
        let end = beginning.isEmpty ? "GET / HTTP/1.1\r\nhost: web\r\n\r\n" : "host: web\r\n\r\n"
        let requests = [(Duration.zero, beginning), (.milliseconds(rest.milliseconds), end)]
        let answer = conversation.answers(to: requests, resources)
        let isSilent = beginning.isEmpty && rest.status == "408"
        #expect(answer.hasPrefix(isSilent ? "|closed" : "HTTP/1.1 \(rest.status) "), "\(answer)")
    }

    @Test("connections above the limits are answered with 503 and 429, and there is room when others have gone")
    func connections() {
        var conversation = Conversation()
        conversation.limits.connections = 3
        conversation.limits.connectionsPerPeer = 2
        let log = conversation.run(resources) { loop, log in
            func ask(_ peer: Connection) async throws -> String {
                try await peer.write("GET / HTTP/1.1\r\nhost: web\r\n\r\n")
                return String(decoding: try await peer.read()?.prefix(12) ?? [], as: UTF8.self)
            }
            var peers: [Connection] = []
            for _ in 0..<3 { peers.append(try await Connection.connect(host: "web", port: 80, on: loop)) }
            for peer in peers { log.append(try await ask(peer)) }
            for peer in peers { peer.close() }
            try await loop.clock.sleep(for: .seconds(5))
            log.append(try await ask(try await Connection.connect(host: "web", port: 80, on: loop)))
        }
        #expect(log == ["HTTP/1.1 200", "HTTP/1.1 200", "HTTP/1.1 429", "HTTP/1.1 200"])
    }

    @Test("connections are noted when they open and when they have closed, also those that are refused")
    func openings() {
        var conversation = Conversation()
        conversation.limits.connections = 1
        let notes = Log<String>()
        _ = conversation.run { loop, limits in
            let server = resources(loop, limits)
            server.hooks.opened = { _ in notes.append("+") }
            server.hooks.closed = { _ in notes.append("-") }
            return server
        } client: { loop, log in
            var peers: [Connection] = []
            for _ in 0..<2 { peers.append(try await Connection.connect(host: "web", port: 80, on: loop)) }
            try await loop.clock.sleep(for: .seconds(1))
            for peer in peers { peer.close() }
        }
        #expect(notes.entries == ["+", "+", "-", "-"])
    }

    @Test("a body that goes on after its answer is read only for a while")
    func lateBody() {
        var conversation = Conversation()
        conversation.limits.stallTime = .seconds(5)
        let log = conversation.run(resources) { loop, log in
            let peer = try await Connection.connect(host: "web", port: 80, on: loop)
            try await peer.write("POST /early HTTP/1.1\r\n\(Self.host)transfer-encoding: chunked\r\n\r\n")
            loop.task {
                while peer.isOpen {
                    try await peer.write("1\r\nx\r\n")
                    try await loop.clock.sleep(for: .seconds(1))
                }
            }
            while try await peer.read() != nil {}
            log.append("\(loop.now.nanoseconds / 1_000_000_000)")
        }
        #expect(log == ["5"])
        #expect(conversation.completions.entries.map(\.limit) == [.stallTime])
    }

    @Test("a client that does not read holds back the program, and is cut off when its time is over")
    func unread() {
        var conversation = Conversation()
        conversation.limits.stallTime = .seconds(5)
        let written = Log<Int>()
        let log = conversation.run { loop, limits in
            HTTPServer(on: loop, limits: limits) { _ in
                .stream(type: "text/plain") { writer in
                    while true {
                        try await writer.write(ByteBuffer(repeating: 1, count: 10_000))
                        written.append(10_000)
                    }
                }
            }
        } client: { loop, log in
            let peer = try await Connection.connect(host: "web", port: 80, on: loop)
            peer.pauseReading()
            try await peer.write("GET / HTTP/1.1\r\nhost: web\r\n\r\n")
            try await loop.clock.sleep(for: .seconds(60))
            log.append("\(written.entries.count * 10_000 < 2_000_000)")
            peer.close()
        }
        #expect(log == ["true"])
        let notes = conversation.completions.entries
        #expect(notes.map(\.limit) == [.stallTime] && notes.map(\.isCutOff) == [true], "\(notes)")
        #expect(notes.first.map { $0.duration < .seconds(10) } == true, "\(notes)")
    }

    @Test("a program that goes on writing gives a client that does not read no more time")
    func writesOn() {
        var conversation = Conversation()
        conversation.limits.stallTime = .seconds(5)
        _ = conversation.run { loop, limits in
            HTTPServer(on: loop, limits: limits) { exchange in
                exchange.begin(HTTPResponse(status: .ok))
                exchange.write(ByteBuffer(repeating: 1, count: 1_000_000))
                let timer = Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { _ in
                    exchange.write(ByteBuffer(repeating: 1, count: 100))
                }
                exchange.closeHandler = { _, _ in timer.invalidate() }
            }
        } client: { loop, log in
            let peer = try await Connection.connect(host: "web", port: 80, on: loop)
            peer.pauseReading()
            try await peer.write("GET / HTTP/1.1\r\nhost: web\r\n\r\n")
            try await loop.clock.sleep(for: .seconds(60))
            peer.close()
        }
        let notes = conversation.completions.entries
        #expect(notes.map(\.limit) == [.stallTime] && notes.map(\.isCutOff) == [true], "\(notes)")
        #expect(notes.first.map { $0.duration < .seconds(6) } == true, "\(notes)")
    }

    @Test("a client that sends faster than the program takes is held back, and nothing is lost")
    func slowProgram() {
        var conversation = Conversation()
        conversation.limits.bodyBytes = 20_000_000
        let sent = Log<Int>()
        let log = conversation.run { loop, limits in
            HTTPServer(on: loop, limits: limits) { request in
                var count = 0
                for try await piece in request.body {
                    count += piece.readableBytes
                    try await loop.clock.sleep(for: .milliseconds(500))
                }
                return .text("\(count)")
            }
        } client: { loop, log in
            let peer = try await Connection.connect(host: "web", port: 80, on: loop)
            let fields = "host: web\r\ncontent-length: 10000000\r\nconnection: close\r\n"
            try await peer.write("POST / HTTP/1.1\r\n\(fields)\r\n")
            loop.task {
                for _ in 0..<1_000 {
                    try await peer.write([UInt8](repeating: 1, count: 10_000))
                    sent.append(10_000)
                }
            }
            try await loop.clock.sleep(for: .milliseconds(250))
            log.append("\(sent.entries.count < 300)")
            var text = ""
            while let bytes = try await peer.read() { text += String(decoding: bytes, as: UTF8.self) }
            log.append(String(text.suffix(8)))
        }
        #expect(log == ["true", "10000000"])
    }

    @Test(
        "the task of a request does not wait for a body that ends too early or cannot be read",
        arguments: [("content-length: 9\r\n\r\nabc", true), ("transfer-encoding: chunked\r\n\r\n3\r\nabcxx", false)])
    func brokenBodies(body: String, endsOutput: Bool) {
        let ends = Log<Int64>()
        let requests = [(Duration.zero, "POST / HTTP/1.1\r\n\(Self.host)\(body)")]
        let answer = Conversation().answers(to: requests, endsOutput: endsOutput) { loop, limits in
            HTTPServer(on: loop, limits: limits) { request in
                defer { ends.append(loop.now.nanoseconds / 1_000_000_000) }
                for try await _ in request.body {}
                return .text("whole")
            }
        }
        #expect(answer.hasPrefix("HTTP/1.1 400 ") && answer.hasSuffix("|closed"), "\(answer)")
        #expect(ends.entries == [0])
    }

    @Test("the task of a request is cancelled when its client goes")
    func gone() {
        let conversation = Conversation()
        let cancelled = Log<String>()
        _ = conversation.run { loop, limits in
            HTTPServer(on: loop, limits: limits) { _ in
                do { try await loop.clock.sleep(for: .seconds(30)) } catch {
                    cancelled.append("\(loop.now.nanoseconds / 1_000_000_000) \(error)")
                    throw error
                }
                return .text("late")
            }
        } client: { loop, _ in
            let peer = try await Connection.connect(host: "web", port: 80, on: loop)
            try await peer.write("GET / HTTP/1.1\r\nhost: web\r\n\r\n")
            try await loop.clock.sleep(for: .seconds(2))
            peer.reset()
        }
        #expect(cancelled.entries == ["2 CancellationError()"])
        #expect(conversation.failures.entries == [])
        #expect(conversation.completions.entries.map(\.isCutOff) == [true])
    }
}
#endif
