import Testing

@testable import Scenarios

@Suite("Reading JSON")
struct JSONParserTests {
    @Test("text that is not JSON is named by line and column", arguments: Malformed.texts)
    func syntax(_ text: String, _ expected: String) {
        #expect(fault(text) == expected)
    }

    @Test(
        "invalid UTF-8 is reported by line and column",
        arguments: [[0xFF], [0xC3], [0xE2, 0x82], [0xC0, 0x80], [0xED, 0xA0, 0x80]] as [[UInt8]])
    func notUTF8(_ bytes: [UInt8]) {
        let text = Array("\n[\"é".utf8) + bytes + Array("é\"]".utf8)
        do throws(ScenarioError) {
            _ = try Scenario(json: text)
            Issue.record("it is read")
        } catch {
            #expect(error.description == "line 2, column 4: this is not UTF-8")
        }
    }

    @Test("nesting without end is refused")
    func nesting() {
        let text = String(repeating: "[", count: 100_000)
        #expect(fault(text) == "line 1, column 101: nested more than 100 levels deep")
    }

    @Test("names may have any characters")
    func names() throws {
        let timers = try read(#"{"duration":1,"timers":[{"name":"\"é\u00e9\ud83d\ude00\n","first":1}]}"#).timers
        #expect(timers[0].name == "\"éé😀\n")
    }

    @Test("every escape is read")
    func escapes() throws {
        let name = #"\"\\\/\b\f\n\r\t\u0041\u00e9\ud83d\uDE00"#
        let timers = try read(#"{"duration":1,"timers":[{"name":"\#(name)","first":1}]}"#).timers
        #expect(timers[0].name == "\"\\/\u{8}\u{C}\n\r\tAé😀")
    }

    @Test("a key spelt in two ways is a duplicate")
    func keyInTwoSpellings() {
        #expect(fault(#"{"duration":1,"\u0064uration":2}"#) == #"line 1, column 15: the key "duration" is given twice"#)
    }

    @Test("of a hundred thousand values the parser keeps no more than it needs for the next")
    func keepsLittle() throws {
        let line = Array("{ \"duration\": 1.0, \"timers\": [] }\n".utf8)
        let piece = Array((0..<100).map { _ in line }.joined())
        var pieces = 0
        var parser = JSONParser {
            pieces += 1
            return pieces <= 1_000 ? piece : []
        }
        var values = 0
        var longest = 0
        while parser.findValue() {
            _ = try parser.value()
            values += 1
            longest = max(longest, parser.text.count)
            // Pieces are read only when needed.
            try #require(pieces == (values - 1) / 100 + 1)
        }
        #expect(values == 100_000)
        #expect(parser.line == 100_001)
        #expect(longest < 200_000)
    }
}

/// Texts, and their errors.
private enum Malformed {
    static let texts = [
        ("", "line 1, column 1: expected a value, but the file ends"),
        ("{\"duration\": 1,\n\n \"é\" 2}", "line 1, broken at line 3, column 6: expected ':' after the key"),
        (#"{"duration": 1,}"#, "line 1, column 16: expected a key in quotes"),
        (#"{"duration": 1"#, "line 1, column 15: expected ',' or '}' in the object, but the file ends"),
        ("[1,]", "line 1, column 4: expected a value"), ("[1 2]", "line 1, column 4: expected ',' or ']' in the array"),
        ("{} x", "line 1, column 4: expected nothing more after the value"),
        (#"{"duration": 01}"#, "line 1, column 15: expected ',' or '}' in the object"),
        (#"{"duration": 1.}"#, "line 1, column 16: expected a digit"),
        (#"{"duration": 1e}"#, "line 1, column 16: expected a digit"),
        (#"{"duration": +1}"#, "line 1, column 14: expected a value"),
        (#"{"duration": NaN}"#, "line 1, column 14: expected a value"),
        (#"{"duration": tru}"#, "line 1, column 14: expected a value"),
        (#"{"duration": 1, "duration": 2}"#, "line 1, column 17: the key \"duration\" is given twice"),
        ("{\"dur", "line 1, column 6: expected '\"' at the end of the string, but the file ends"),
        ("[\"a\nb\"]", "line 1, column 4: a control character in a string must be escaped"),
        (#"["\x"]"#, "line 1, column 3: unknown escape"),
        (#"["\u12g4"]"#, "line 1, column 7: expected four hexadecimal digits"),
        (#"["\ud800"]"#, "line 1, column 3: half of a surrogate pair"),
        (#"["\udc00"]"#, "line 1, column 3: half of a surrogate pair"),
    ]
}
