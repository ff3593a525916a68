import Glibc
import RunLoopKit
import RunLoopUnix
import TestSupport
import Testing

@Suite("Lines of tasks", .timeLimit(.minutes(5)))
struct LineTaskTests {
    private static func connections(
        on loop: RunLoop, limits: Connection.Limits = .init()
    ) -> (Connection, Connection) {
        let pair = makeSockets()
        return (Connection(adopting: pair.0, on: loop, limits: limits), Connection(adopting: pair.1, on: loop))
    }

    @Test("lines come whole, in however small pieces they arrive, and cancelled waits take nothing")
    func pieces() async {
        let seed = UInt64.random(in: 0 ... .max)
        await onLoop { loop in
            var random = SeededGenerator(seed: seed)
            let (reader, writer) = Self.connections(on: loop)
            let sent = (0..<500).map { _ in
                String(repeating: "x", count: Int.random(in: 0...60, using: &random)) + "é"
            }
            let bytes = Array(sent.joined(separator: "\r\n").utf8)
            let writing = loop.task {
                var random = SeededGenerator(seed: seed &+ 1)
                try await writer.withStream { stream in
                    var rest = bytes[...]
                    while !rest.isEmpty {
                        let piece = rest.prefix(Int.random(in: 1...90, using: &random))
                        try await stream.write(Array(piece))
                        rest = rest.dropFirst(piece.count)
                        if Bool.random(using: &random) { await Task.yield() }
                    }
                }
            }
            var received: [String] = []
            var isOver = false
            while !isOver {
                let task = loop.task {
                    let lines = reader.lines().makeAsyncIterator()
                    guard let line = try await lines.next() else { return true }
                    received.append(line)
                    return false
                }
                for _ in 0..<Int.random(in: 0...3, using: &random) { await Task.yield() }
                task.cancel()
                do { isOver = try await task.value } catch { #expect(error is CancellationError, "seed \(seed)") }
            }
            #expect(received == sent, "seed \(seed)")
            try await writing.value
            reader.close()
        }
    }

    @Test("the limit does not apply to waiting lines, and the bytes after a line are left to other reads")
    func rest() async {
        await onLoop { loop in
            var limits = Connection.Limits()
            limits.maximumInput = 10
            let (reader, writer) = Self.connections(on: loop, limits: limits)
            try await writer.write("a\n" + String(repeating: "b", count: 8) + "\nccc\nrest")
            let lines = reader.lines(upTo: 8).makeAsyncIterator()
            for expected in ["a", "bbbbbbbb", "ccc"] { #expect(try await lines.next() == expected) }
            #expect(try await reader.read() == Array("rest".utf8))
            try await writer.write("d\n")
            #expect(try await lines.next() == "d")
            writer.close()
            #expect(try await lines.next() == nil)
            #expect(try await lines.next() == nil)
            reader.close()
        }
    }

    @Test("a line that is too long is an error, is not taken, and leaves the connection open")
    func tooLong() async {
        await onLoop { loop in
            for text in ["abcdef\n", "abcdef\r\n", "abcdefg"] {
                let (reader, writer) = Self.connections(on: loop)
                try await writer.write("abcde\r\n" + text)
                let lines = reader.lines(upTo: 5).makeAsyncIterator()
                #expect(try await lines.next() == "abcde")
                await #expect(throws: FramingError.tooLong(limit: 5)) { try await lines.next() }
                #expect(reader.isOpen)
                #expect(try await reader.read() == Array(text.utf8))
                reader.close()
                writer.close()
            }
            // Six bytes may become five and a carriage return, until the end shows that they do not.
            let (reader, writer) = Self.connections(on: loop)
            try await writer.write("abcdef")
            writer.close()
            await #expect(throws: FramingError.tooLong(limit: 5)) {
                for try await _ in reader.lines(upTo: 5) {}
            }
            #expect(try await reader.read() == Array("abcdef".utf8))
            reader.close()
        }
    }

    @Test("a second reader is refused")
    func second() async {
        await onLoop { loop in
            let (reader, writer) = Self.connections(on: loop)
            try await writer.write("begun")
            let first = loop.task {
                let lines = reader.lines().makeAsyncIterator()
                return try await lines.next()
            }
            await Task.yield()
            await #expect(throws: RunLoop.WaitError.alreadyWaiting("what a connection receives")) {
                for try await _ in reader.lines() {}
            }
            // The same holds for buffered input: the line would lose its beginning.
            while reader.unusedInput == 0 { await pass(of: loop) }
            await #expect(throws: RunLoop.WaitError.alreadyWaiting("what a connection receives")) {
                try await reader.read()
            }
            try await writer.write(" and done\n")
            #expect(try await first.value == "begun and done")
            reader.close()
            writer.close()
        }
    }
}
