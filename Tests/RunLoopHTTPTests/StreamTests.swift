#if Adapters
import NIOCore
import RunLoopHTTP
import RunLoopKit
import RunLoopUnix
import TestSupport
import Testing

@Suite("HTTP/2, simulated")
struct StreamTests {
    private static let whole = FrameClient.endHeaders | FrameClient.endStream

    @Test("streams of one connection are answered, each when its answer is ready")
    func streams() {
        let conversation = Conversation()
        let log = conversation.run(resources) { loop, log in
            let client = try await FrameClient(loop)
            try await client.send(FrameClient.headers, Self.whole, 1, FrameClient.head("GET", "/stream"))
            try await client.send(FrameClient.headers, Self.whole, 3, FrameClient.head())
            log.append(try await client.body(of: 3))
            log.append("\(loop.now.nanoseconds / 1_000_000_000)")
            log.append(try await client.body(of: 1))
            try await client.send(FrameClient.headers, FrameClient.endHeaders, 5, FrameClient.head("POST", "/echo"))
            try await client.send(FrameClient.data, FrameClient.endStream, 5, Array("abc".utf8))
            log.append(try await client.body(of: 5))
            client.peer.close()
        }
        #expect(log == ["hello", "0", "onetwo", "abc"])
        let paths = conversation.completions.entries.map { "\($0.request?.path ?? "-") \($0.isCutOff)" }
        #expect(paths == ["/ false", "/stream false", "/echo false"])
    }

    @Test("a stream whose head is refused before it is announced ends alone, and is not counted as open")
    func refusedHead() {
        var conversation = Conversation()
        conversation.limits.idleTime = .seconds(20)
        let log = conversation.run(resources) { loop, log in
            let client = try await FrameClient(loop)
            // CONNECT has no path.
            let head = [2, 7] + Array("CONNECT".utf8) + [1, 1] + Array("x".utf8)
            try await client.send(FrameClient.headers, Self.whole, 1, head)
            log.append(try await client.body(of: 1))
            try await client.send(FrameClient.headers, Self.whole, 3, FrameClient.head())
            log.append(try await client.body(of: 3))
            while let frame = try await client.next() {
                if frame.type == FrameClient.ping {
                    try await client.send(FrameClient.ping, FrameClient.ack, 0, frame.payload)
                }
            }
            log.append("closed at \(loop.now.nanoseconds / 1_000_000_000)")
        }
        #expect(log == ["|reset 8", "hello", "closed at 20"], "\(log)")
    }

    /// The connection would keep the function that answers, and so this.
    private final class Token: Sendable {}

    /// The last act of a client after it has sent its bytes.
    private enum Ending { case closesLater, closes, resets }

    /// Has a client send bytes after its preface. Returns `true` if nothing is left of the connection after its end.
    private func leavesNothing(_ bytes: [UInt8], _ ending: Ending = .closesLater) -> Bool {
        var token: Token? = Token()
        weak let kept = token
        var conversation = Conversation()
        // The bytes and the end arrive before the server reads any.
        if ending != .closesLater { conversation.block = (.seconds(1), .seconds(2)) }
        let log = conversation.run({ [token] loop, limits in
            HTTPServer(on: loop, limits: limits) { _ in .text(token == nil ? "gone" : "hello") }
        }) { loop, log in
            let client = try await FrameClient(loop)
            try await loop.clock.sleep(for: .milliseconds(1_500))
            try await client.peer.write(bytes)
            switch ending {
            case .closesLater:
                while let frame = try await client.next(), frame.type != FrameClient.data {}
                client.peer.close()
            case .closes: client.peer.close()
            case .resets:
                try await loop.clock.sleep(for: .milliseconds(100))
                client.peer.reset()
            }
            log.append("ended")
        }
        token = nil
        return log == ["ended"] && kept == nil
    }

    @Test("a connection that an error ends, in the same read as a request, leaves nothing behind")
    func leftovers() {
        let request = FrameClient.bytes(FrameClient.headers, Self.whole, 1, FrameClient.head())
        #expect(leavesNothing(request))
        // No window may grow by nothing.
        let error = FrameClient.bytes(FrameClient.windowUpdate, 0, 0, [0, 0, 0, 0])
        #expect(leavesNothing(request + error))
        #expect(leavesNothing(request + error, .closes))
        #expect(leavesNothing(request + error, .resets))
    }

    @Test("an answer that cannot be completed resets its stream alone")
    func resets() {
        let conversation = Conversation()
        let log = conversation.run(resources) { loop, log in
            let client = try await FrameClient(loop)
            for (stream, path) in [(1, "/broken"), (3, "/short"), (5, "/")] as [(UInt32, String)] {
                try await client.send(FrameClient.headers, Self.whole, stream, FrameClient.head("GET", path))
                log.append(try await client.body(of: stream))
            }
            client.peer.close()
        }
        #expect(log == ["begun|reset 2", "four|reset 2", "hello"])
    }

    @Test("an exchange's drain handler is not called within a write of its own", arguments: [false, true])
    func drainsLater(isLater: Bool) {
        let conversation = Conversation()
        let log = conversation.run { loop, limits in
            HTTPServer(on: loop, limits: limits) { exchange in
                var (left, isWriting) = (100, false)
                func write(_ exchange: HTTPExchange) {
                    while left > 0, exchange.isWritable {
                        #expect(!isWriting)
                        isWriting = true
                        exchange.write(ByteBuffer(repeating: UInt8(ascii: "x"), count: 10_000))
                        isWriting = false
                        left -= 1
                    }
                    if left == 0 { exchange.finish() }
                }
                exchange.begin(.init(status: .ok), length: 1_000_000)
                exchange.drainHandler = { write($0) }
                // Also outside of a handler of the connection.
                if isLater { loop.perform { write(exchange) } } else { write(exchange) }
            }
        } client: { loop, log in
            let client = try await FrameClient(loop)
            // Windows of more than the whole body, of each stream and of the connection.
            try await client.send(FrameClient.settings, 0, 0, [0, 4, 0, 0x7f, 0xff, 0xff])
            try await client.send(FrameClient.windowUpdate, 0, 0, [0, 0x7f, 0xff, 0xff])
            try await client.send(FrameClient.headers, Self.whole, 1, FrameClient.head())
            log.append("\(try await client.body(of: 1).utf8.count)")
        }
        #expect(log == ["1000000"])
    }

    @Test("a client without windows has one piece of each answer in memory", arguments: [0, 0xffff])
    func unread(window: Int) {
        let pieces = Log<Int>()
        _ = Conversation().run {
            endless($0, $1, pieces)
        } client: { loop, _ in
            let client = try await FrameClient(loop)
            try await client.send(FrameClient.settings, 0, 0, [0, 4, 0, 0, UInt8(window >> 8), UInt8(window & 255)])
            for number in 0..<100 {
                try await client.send(FrameClient.headers, Self.whole, UInt32(2 * number + 1), FrameClient.head())
            }
            try await loop.clock.sleep(for: .seconds(20))
            client.peer.close()
        }
        // The window of the connection has room for two.
        #expect(pieces.entries.count <= (window == 0 ? 100 : 102))
    }

    @Test("a stream that the client resets cancels its request")
    func cancelled() {
        let conversation = Conversation()
        let cancelled = Log<String>()
        _ = conversation.run { loop, limits in
            HTTPServer(on: loop, limits: limits) { _ in
                do { try await loop.clock.sleep(for: .seconds(30)) } catch {
                    cancelled.append("\(loop.now.nanoseconds / 1_000_000_000)")
                    throw error
                }
                return .text("late")
            }
        } client: { loop, _ in
            let client = try await FrameClient(loop)
            try await client.send(FrameClient.headers, Self.whole, 1, FrameClient.head())
            try await loop.clock.sleep(for: .seconds(2))
            try await client.send(FrameClient.reset, 0, 1, [0, 0, 0, 8])
            try await loop.clock.sleep(for: .seconds(2))
        }
        #expect(cancelled.entries == ["2"])
    }

    @Test("a server that shuts down lets the streams of a connection end, and says so")
    func goAway() {
        let conversation = Conversation()
        let done = Log<String>()
        let log = conversation.run(resources) { loop, server in
            loop.perform(afterDelay: .milliseconds(500)) { server.shutDown { done.append("done") } }
        } client: { loop, log in
            let client = try await FrameClient(loop)
            try await client.send(FrameClient.headers, Self.whole, 1, FrameClient.head("GET", "/stream"))
            try await client.send(FrameClient.headers, FrameClient.endHeaders, 3, FrameClient.head("POST", "/echo"))
            try await client.send(FrameClient.data, 0, 3, Array("12345".utf8))
            var (text, errors) = ("", [UInt32]())
            while let frame = try await client.next() {
                if frame.type == FrameClient.goAway {
                    if errors.isEmpty {
                        try await client.send(FrameClient.data, FrameClient.endStream, 3, Array("67890".utf8))
                    }
                    errors += [frame.error ?? 9]
                }
                if frame.type == FrameClient.data { text += String(decoding: frame.payload, as: UTF8.self) }
                if frame.type == FrameClient.ping, frame.flags == 0 {
                    try await client.send(FrameClient.ping, FrameClient.ack, 0, frame.payload)
                }
            }
            log.append("\(text) \(errors)")
        }
        #expect(log == ["one1234567890two [0, 0]"] && done.entries == ["done"], "\(log)")
    }

    @Test(
        "a connection without a stream is told its end after the idle time, and closes when the client agrees, or soon")
    func idle() {
        var conversation = Conversation()
        conversation.limits.idleTime = .seconds(20)
        for agrees in [true, false] {
            let log = conversation.run(resources) { loop, log in
                let client = try await FrameClient(loop)
                try await loop.clock.sleep(for: .seconds(10))
                try await client.send(FrameClient.headers, Self.whole, 1, FrameClient.head())
                log.append(try await client.body(of: 1))
                while let frame = try await client.next() {
                    if frame.type == FrameClient.goAway {
                        log.append("\(frame.error ?? 9) at \(loop.now.nanoseconds / 1_000_000_000)")
                    }
                    if agrees, frame.type == FrameClient.ping {
                        try await client.send(FrameClient.ping, FrameClient.ack, 0, frame.payload)
                    }
                }
                log.append("closed at \(loop.now.nanoseconds / 1_000_000_000)")
            }
            let ends = agrees ? ["0 at 30", "0 at 30", "closed at 30"] : ["0 at 30", "closed at 31"]
            #expect(log == ["hello"] + ends, "\(log)")
        }
    }

    @Test("an early answer ends its stream when the body does not come")
    func early() {
        var conversation = Conversation()
        conversation.limits.stallTime = .seconds(5)
        let log = conversation.run(resources) { loop, log in
            let client = try await FrameClient(loop)
            try await client.send(FrameClient.headers, FrameClient.endHeaders, 1, FrameClient.head("POST", "/early"))
            try await client.send(FrameClient.data, 0, 1, [0x78])
            log.append(try await client.body(of: 1))
            log.append("\(loop.now.nanoseconds / 1_000_000_000)")
            while let frame = try await client.next() {
                guard frame.type == FrameClient.reset else { continue }
                log.append("reset \(frame.error ?? 9) at \(loop.now.nanoseconds / 1_000_000_000)")
                break
            }
            client.peer.close()
        }
        #expect(log == ["early", "0", "reset 0 at 5"])
    }

    @Test("a refused body ends its stream, or has a second to end")
    func refusedBody() {
        let log = Conversation().run { loop, limits in
            HTTPServer(on: loop, limits: limits) { .text(try await "\($0.body.collect(upTo: 3).readableBytes)") }
        } client: { loop, log in
            let client = try await FrameClient(loop)
            for (stream, ends) in [(1, true), (3, false)] as [(UInt32, Bool)] {
                let flags = FrameClient.endHeaders
                try await client.send(FrameClient.headers, flags, stream, FrameClient.head("POST"))
                try await client.send(FrameClient.data, 0, stream, [1, 2, 3, 4])
                log.append(try await client.body(of: stream))
                // A reset of the stream would come before the next answer.
                if ends { try await client.send(FrameClient.data, FrameClient.endStream, stream, [5]) }
            }
            log.append(try await client.body(of: 3))
            log.append("\(loop.now.nanoseconds / 1_000_000_000)")
            client.peer.close()
        }
        let text = "the body is too large\n"
        #expect(log == [text, text, text + "|reset 0", "1"], "\(log)")
    }

    @Test("an error ends a connection soon, whatever streams it has and whatever its client sends")
    func error() {
        let log = Conversation().run(resources) { loop, log in
            let client = try await FrameClient(loop)
            try await client.send(FrameClient.headers, FrameClient.endHeaders, 1, FrameClient.head("POST", "/echo"))
            // A ping of another length than 8.
            do {
                while client.peer.isOpen {
                    try await client.send(FrameClient.ping, 0, 0, [0])
                    try await loop.clock.sleep(for: .milliseconds(500))
                }
            } catch {}
            log.append("\(loop.now < RunLoop.Instant(nanoseconds: 5_000_000_000))")
        }
        #expect(log == ["true"])
    }

    @Test("an answer that its client has no window for ends its stream when its time is over")
    func closedWindow() {
        var conversation = Conversation()
        conversation.limits.stallTime = .seconds(5)
        let log = conversation.run(resources) { loop, log in
            let client = try await FrameClient(loop)
            // The initial window is zero.
            try await client.send(FrameClient.settings, 0, 0, [0, 4, 0, 0, 0, 0])
            let flags = FrameClient.endHeaders | FrameClient.endStream
            try await client.send(FrameClient.headers, flags, 1, FrameClient.head())
            while let frame = try await client.next() {
                guard frame.type == FrameClient.reset else { continue }
                log.append("reset \(frame.error ?? 9) at \(loop.now.nanoseconds / 1_000_000_000)")
                break
            }
            client.peer.close()
        }
        #expect(log == ["reset 0 at 5"])
    }
}
#endif
