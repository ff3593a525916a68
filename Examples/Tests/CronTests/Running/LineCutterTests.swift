import Testing

@testable import Cron

@Suite("Output in lines")
struct LineCutterTests {
    private func lines(_ pieces: [String]) -> [String] {
        var cutter = LineCutter()
        var lines: [String] = []
        for piece in pieces { cutter.cut(Array(piece.utf8)) { lines.append($0) } }
        cutter.end { lines.append($0) }
        return lines
    }

    @Test("output is cut at line feeds, regardless of the pieces it comes in, and the last line needs none")
    func pieces() {
        #expect(lines(["a\nb", "", "c\n\nd"]) == ["a", "bc", "", "d"])
        #expect(lines(["a\n"]) == ["a"])
        #expect(lines([]) == [])
    }

    @Test("output is cut where a line is too long, and nothing is lost")
    func long() {
        let longest = String(repeating: "x", count: LineCutter.longest)
        #expect(lines([longest + "\n"]) == [longest])
        #expect(lines([longest + "y\nz"]) == [longest, "y", "z"])
        #expect(lines([longest, longest, "\n"]) == [longest, longest])
    }

    @Test("lines have no control characters, which would move the cursor of a terminal")
    func control() {
        #expect(lines(["a\tb\r\u{1B}[2J\u{7F}\u{9B}é\n"]) == [#"a\#tb\r\u{1B}[2J\u{7F}\u{009B}é"#])
    }
}
