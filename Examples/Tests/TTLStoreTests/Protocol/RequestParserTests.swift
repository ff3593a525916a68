import ExampleTestSupport
import Testing

@testable import TTLStore

@Suite("Reading requests")
struct RequestParserTests {
    /// Returns the requests in the text, and its end: the length of the rest, or an error.
    private func parse(_ text: String, _ limits: RequestParser.Limits = .init()) -> (requests: [[String]], end: String)
    {
        let bytes = Array(text.utf8)
        var parser = RequestParser()
        parser.limits = limits
        var requests: [[String]] = []
        var position = 0
        return bytes.withUnsafeBufferPointer { bytes in
            while true {
                switch parser.parse(bytes, from: position) {
                case .incomplete: return (requests, "\(bytes.count - position) left")
                case .malformed(let text): return (requests, text)
                case .request(let end):
                    let words = parser.unquoted ?? Array(bytes[position...])
                    requests.append(parser.arguments.map { String(decoding: words[$0], as: UTF8.self) })
                    position = end
                }
            }
        }
    }

    @Test("arrays of bulk strings, several in a row, and empty ones")
    func arrays() {
        let (requests, end) = parse("*2\r\n$3\r\nGET\r\n$1\r\na\r\n*0\r\n*1\r\n$0\r\n\r\n*-1\r\n*1\r\n$4\r\nPI")
        #expect(requests == [["GET", "a"], [], [""], []])
        #expect(end == "10 left")
    }

    @Test("inline commands: words between blanks, with either end of line")
    func inline() {
        let (requests, end) = parse("PING\r\n  SET  key\tvalue \n\r\n\nGE")
        #expect(requests == [["PING"], ["SET", "key", "value"], [], []])
        #expect(end == "2 left")
    }

    @Test("words in quotes, with escapes in them")
    func quotes() {
        let (requests, end) = parse(#"a "b c" 'd "e'  f"g\n\x41\"""# + "\n\"\" '\\''\r\n")
        #expect(requests == [["a", "b c", "d \"e", "fg\nA\""], ["", "'"]])
        #expect(end == "0 left")
        for text in ["\"a", "'a", "'a'b", "\"a\\\""] {
            #expect(parse(text + "\n").end == "Protocol error: unbalanced quotes in request", "\(text)")
        }
    }

    @Test("a bulk string may contain anything, line breaks included")
    func binary() {
        #expect(parse("*1\r\n$8\r\na\r\nb\0*1\r\r\n").requests == [["a\r\nb\0*1\r"]])
    }

    @Test("every way to cut a request in two gives the same request")
    func cuts() {
        let bytes = Array("*3\r\n$3\r\nSET\r\n$10\r\n0123456789\r\n$2\r\n\r\n\r\n".utf8)
        for cut in 0..<bytes.count {
            var parser = RequestParser()
            Array(bytes[..<cut]).withUnsafeBufferPointer { #expect(parser.parse($0, from: 0) == .incomplete) }
            bytes.withUnsafeBufferPointer { #expect(parser.parse($0, from: 0) == .request(end: bytes.count)) }
            #expect(parser.arguments == [8..<11, 18..<28, 34..<36], "cut at \(cut)")
        }
    }

    @Test("a request that comes in pieces is not read from its begin again", arguments: ["*2000\r\n", ""])
    func pieces(begin: String) {
        // Before the end of an inline command has arrived, the parser looks only for that end.
        let word = begin.isEmpty ? "word " : "$4\r\nword\r\n"
        var bytes = Array((begin + String(repeating: word, count: 2000) + (begin.isEmpty ? "\n" : "")).utf8)
        var parser = RequestParser()
        for end in stride(from: 100, to: bytes.count, by: 100) {
            bytes[..<end].withUnsafeBufferPointer { #expect(parser.parse($0, from: 0) == .incomplete) }
            guard !begin.isEmpty else { continue }
            // A parser that read these again would not understand them.
            let read = parser.arguments.last?.upperBound ?? 1
            for index in 1..<read { bytes[index] = 0 }
        }
        let count = bytes.count
        bytes.withUnsafeBufferPointer { #expect(parser.parse($0, from: 0) == .request(end: count)) }
        #expect(parser.arguments.count == 2000)
    }

    @Test("random requests in random pieces are the same as whole", arguments: 0..<20)
    func randomPieces(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var bytes: [UInt8] = []
        for _ in 0..<50 {
            let words = (0..<Int.random(in: 1...5, using: &random)).map { _ in
                String(repeating: "x", count: .random(in: 0...40, using: &random))
            }
            if Bool.random(using: &random) {
                bytes += "*\(words.count)\r\n".utf8
                for word in words { bytes += "$\(word.count)\r\n\(word)\r\n".utf8 }
            } else {
                bytes += (words.joined(separator: " ") + "\r\n").utf8
            }
        }
        let whole = parse(String(decoding: bytes, as: UTF8.self))
        var parser = RequestParser()
        var requests: [[String]] = []
        var (start, end) = (0, 0)
        while end < bytes.count {
            end = min(bytes.count, end + .random(in: 1...30, using: &random))
            bytes[start..<end].withUnsafeBufferPointer { piece in
                var position = 0
                while case .request(let next) = parser.parse(piece, from: position) {
                    let words = Array(piece[position...])
                    requests.append(parser.arguments.map { String(decoding: words[$0], as: UTF8.self) })
                    position = next
                }
                start += position
            }
        }
        #expect(requests == whole.requests, "seed \(seed)")
    }

    @Test(
        "input that breaks the protocol is refused",
        arguments: [
            ("*x\r\n", "Protocol error: invalid multibulk length"),
            ("*1x\r\n", "Protocol error: invalid multibulk length"),
            ("*\r\n", "Protocol error: invalid multibulk length"),
            ("*1\n$1\r\na\r\n", "Protocol error: invalid multibulk length"),
            ("*9999999999999999999\r\n", "Protocol error: invalid multibulk length"),
            ("*1\r\n:1\r\n", "Protocol error: expected '$', got ':'"),
            ("*1\r\n$-1\r\n", "Protocol error: invalid bulk length"),
            ("*1\r\n$x\r\n", "Protocol error: invalid bulk length"),
            ("*1\r\n$1\r\nabc", "Protocol error: a bulk string does not end with CRLF"),
        ])
    func malformed(text: String, error: String) {
        #expect(parse(text).end == error)
    }

    @Test("a request that exceeds a limit is refused as soon as that is known")
    func limits() {
        var limits = RequestParser.Limits()
        (limits.arguments, limits.argumentSize, limits.inlineSize) = (3, 10, 20)
        #expect(parse("*4\r\n", limits).end == "Protocol error: invalid multibulk length")
        #expect(parse("*1\r\n$11\r\n", limits).end == "Protocol error: invalid bulk length")
        #expect(parse(String(repeating: "x", count: 21), limits).end == "Protocol error: too big inline request")
        #expect(parse(String(repeating: "x", count: 20), limits).end == "20 left")
        (limits.requestSize, limits.inlineSize) = (30, 40)
        #expect(parse("*3\r\n$8\r\nabcdefgh\r\n$9\r\n", limits).end == "Protocol error: too big request")
    }

    @Test("random bytes never trap, and are consumed or refused", arguments: 0..<40)
    func random(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let letters = Array("*$0123456789-\r\n\r\n\r\nGETabc \0\"'\\x".utf8)
        for _ in 0..<500 {
            var parser = RequestParser()
            let bytes = (0..<Int.random(in: 0..<60, using: &random)).map { _ in letters.randomElement(using: &random)! }
            bytes.withUnsafeBufferPointer { bytes in
                var position = 0
                while case .request(let end) = parser.parse(bytes, from: position) {
                    #expect(end > position && end <= bytes.count, "seed \(seed)")
                    let bounds = parser.unquoted.map(\.indices) ?? 0..<end - position
                    #expect(parser.arguments.allSatisfy { $0.clamped(to: bounds) == $0 }, "seed \(seed)")
                    position = end
                }
            }
        }
    }
}
