import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@_spi(Ports) @testable import RunLoopUnix

@Suite("Framing")
struct FramingTests {
    /// Returns the messages found in `bytes` that arrive in pieces, and the connection's end.
    private func messages(
        in pieces: [[UInt8]], inputLimit: Int = 1 << 20,
        _ framing: (@escaping Framing.MessageHandler) -> Connection.ReceiveHandler
    ) throws -> (messages: [String], reason: Connection.CloseReason?, unused: Int) {
        try withSimulation { simulation in
            var messages: [String] = []
            var reason: Connection.CloseReason?
            let (one, other) = MemoryStream.pair(capacity: 1 << 22)
            var limits = Connection.Limits()
            limits.maximumInput = inputLimit
            let connection = Connection(
                one, on: simulation.loop, inModes: .common, limits: limits,
                origin: RunLoop.Origin(file: #fileID, line: #line), receive: framing { messages.append($1.text) })
            connection.closeHandler = { reason = $1 }
            try connection.start()
            for piece in pieces where !piece.isEmpty {
                piece.withUnsafeBytes { #expect(other.write($0) == .done($0.count)) }
                simulation.advance(by: .zero)
                if !connection.isOpen { break }
            }
            _ = other.endWriting()
            simulation.advance(by: .zero)
            return (messages, reason, connection.unusedInput)
        }
    }

    private func halves(of bytes: [UInt8]) -> [[[UInt8]]] {
        (0...bytes.count).map { [Array(bytes[..<$0]), Array(bytes[$0...])] } + [bytes.map { [$0] }]
    }

    @Test("lines come out the same, regardless of where the input is cut")
    func lines() throws {
        for pieces in halves(of: Array("one\r\ntwo\n\n\rthree\r\r\nrest".utf8)) {
            let result = try messages(in: pieces) { Framing.lines($0) }
            #expect(result.messages == ["one", "two", "", "\rthree\r"])
            #expect(result.reason == .ended && result.unused == 4, "the rest has no end")
        }
    }

    @Test("messages between delimiters come out the same, also if a delimiter begins like another one")
    func delimited() throws {
        for pieces in halves(of: Array("a--b---c--------".utf8)) {
            let result = try messages(in: pieces) { Framing.delimited(by: Array("--".utf8), $0) }
            #expect(result.messages == ["a", "b", "-c", "", "", ""])
            #expect(result.reason == .ended && result.unused == 0)
        }
    }

    @Test("messages with their length in front come out the same, in either order of bytes")
    func lengths() throws {
        for pieces in halves(of: [0, 3] + Array("abc".utf8) + [0, 0, 0, 1] + Array("d".utf8) + [0]) {
            let result = try messages(in: pieces) { Framing.lengthPrefixed(width: 2, $0) }
            #expect(result.messages == ["abc", "", "d"])
            #expect(result.unused == 1)
        }
        let little = try messages(in: [[2, 0, 0, 0, 0, 0, 0, 0] + Array("ok".utf8)]) {
            Framing.lengthPrefixed(width: 8, order: .littleEndian, $0)
        }
        #expect(little.messages == ["ok"])
    }

    @Test("a message up to its limit is taken, and a longer one closes the connection, however it comes")
    func limits() throws {
        let tooLong = Connection.CloseReason.failed(FramingError.tooLong(limit: 5))
        for pieces in halves(of: Array("12345\r\n123456\n".utf8)) {
            let result = try messages(in: pieces) { Framing.lines(upTo: 5, $0) }
            #expect(result.messages == ["12345"] && result.reason == tooLong)
        }
        for pieces in halves(of: Array("12345;123456".utf8)) {
            let result = try messages(in: pieces) { Framing.delimited(by: Array(";".utf8), upTo: 5, $0) }
            #expect(result.messages == ["12345"] && result.reason == tooLong)
        }
        for length in [[0, 6], [255, 255]] as [[UInt8]] {
            let result = try messages(in: [length]) { Framing.lengthPrefixed(width: 2, upTo: 5, $0) }
            #expect(result.messages == [] && result.reason == tooLong)
        }
        let huge = try messages(in: [[UInt8](repeating: 255, count: 8)]) { Framing.lengthPrefixed(width: 8, $0) }
        #expect(huge.reason == .failed(FramingError.tooLong(limit: 64 * 1024)))
    }

    @Test("a framing without a limit accepts the same messages as with one, and waits for the longest message")
    func noLimit() throws {
        let lines = try messages(in: [Array("1\r\n2".utf8)]) { Framing.lines(upTo: .max, $0) }
        #expect(lines.messages == ["1"] && lines.reason == .ended)
        let delimited = try messages(in: [Array("1;2".utf8)]) {
            Framing.delimited(by: Array(";".utf8), upTo: .max, $0)
        }
        #expect(delimited.messages == ["1"] && delimited.reason == .ended)
        let longest = try messages(in: [[127] + [UInt8](repeating: 255, count: 7), [1]]) {
            Framing.lengthPrefixed(width: 8, upTo: .max, $0)
        }
        #expect(longest.messages == [] && longest.reason == .ended && longest.unused == 9)
    }

    @Test("a limit below zero is refused with a sentence")
    func negativeLimit() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            _ = Framing.lengthPrefixed(width: 1, upTo: -1) { _, _ in }
        }
        #expect(says("is at least 0 bytes, not -1", result))
    }

    @Test("a byte of an incomplete message is looked at once, in however small pieces it comes")
    func effort() throws {
        withSimulation { simulation in
            let growth = growth(from: 500, to: 16_000) { count in
                let connection = Connection(adopting: -1, on: simulation.loop) { $1.count }
                let handler = Framing.lines(upTo: 1 << 20) { _, _ in }
                let bytes = [UInt8](repeating: 1, count: count)
                for end in 1...count { _ = handler(connection, bytes.span.extracting(0..<end)) }
            }
            #expect(growth < 8, "32 would be a search from the start each time")
        }
    }

    @Test("no message is delivered while the connection is paused; the next one is delivered when it resumes")
    func pausing() throws {
        try withSimulation { simulation in
            var lines: [String] = []
            let (connection, peer) = try makePair(
                on: simulation.loop,
                receive: Framing.lines { connection, line in
                    lines.append(line.text)
                    connection.pauseReading()
                })
            peer.send("a\nb\nc\n")
            for expected in [["a"], ["a", "b"], ["a", "b", "c"]] {
                simulation.advance(by: .seconds(1))
                #expect(lines == expected)
                connection.resumeReading()
            }
            connection.close()
        }
    }

    @Test("answers to a batch wait for room: requests beyond it are answered later, and nothing is lost")
    func fullBatch() throws {
        try withSimulation { simulation in
            var limits = Connection.Limits()
            limits.highWatermark = 1 << 20
            limits.lowWatermark = 1 << 18
            var most = 0
            let answer = [UInt8](repeating: 1, count: 1 << 20)
            let (connection, peer) = try makePair(
                on: simulation.loop, limits: limits,
                receive: Framing.lines { connection, _ in
                    connection.write(answer)
                    most = max(most, connection.pendingOutput)
                })
            peer.send(String(repeating: "get\n", count: 100))
            var received = 0
            simulation.settle {
                received += peer.receive()?.utf8.count ?? 0
                return received == 100 << 20
            }
            #expect(received == 100 << 20)
            #expect(most <= 3 << 20)
            connection.close()
        }
    }

    @Test("messages that wait for room are answered though the peer has ended meanwhile")
    func fullAtEnd() throws {
        try withSimulation { simulation in
            var limits = Connection.Limits()
            limits.highWatermark = 0
            limits.lowWatermark = 0
            var reason: Connection.CloseReason?
            // Each answer is more than may wait, so that each message has a turn of its own, and the end comes between.
            let (connection, peer) = try makePair(
                on: simulation.loop, limits: limits, receive: Framing.lines { $0.write("\($1.text)!") })
            connection.closeHandler = { reason = $1 }
            peer.send("a\nb\nc\nd\n")
            peer.end()
            simulation.advance(by: .seconds(1))
            #expect(peer.receive() == "a!b!c!d!" && reason == .ended)
            connection.close()
        }
    }
}
