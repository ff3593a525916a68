import Testing

@testable import Scenarios

@Suite("Reading many scenarios")
struct ScenarioReaderTests {
    /// Returns the line and the duration of each scenario in seconds, or its error.
    private func entries(of text: String, pieces size: Int = 1_000) -> [String] {
        var rest = Array(text.utf8)[...]
        var reader = ScenarioReader {
            defer { rest = rest.dropFirst(size) }
            return Array(rest.prefix(size))
        }
        var entries: [String] = []
        while let entry = reader.next() {
            switch entry.scenario {
            case .success(let scenario):
                entries.append("\(entry.line): \(decimalSeconds(scenario.duration, decimals: 0))")
            case .failure(let error): entries.append("\(entry.line): \(error)")
            }
        }
        return entries
    }

    @Test("a text holds one scenario or many, on one line or on several each", arguments: Texts.several)
    func texts(_ text: String, _ expected: [String]) {
        #expect(entries(of: text) == expected)
    }

    @Test("the others are read where one is malformed", arguments: Texts.malformed)
    func malformed(_ text: String, _ expected: [String]) {
        #expect(entries(of: text) == expected)
    }

    @Test("a text reads the same regardless of the pieces it comes in", arguments: 1...9)
    func pieces(size: Int) {
        for (text, expected) in Texts.several + Texts.malformed {
            #expect(entries(of: text, pieces: size) == expected)
        }
    }

    @Test("a scenario is delivered before the next piece is read")
    func asTheyCome() throws {
        var pieces = ["{\"duration\":1}\n", "{\"duration\":", "2}\n", ""].makeIterator()
        var read = 0
        var reader = ScenarioReader {
            read += 1
            return Array(pieces.next()!.utf8)
        }
        #expect(try reader.next()?.scenario.get().duration == 1_000_000_000)
        #expect(read == 1)
        #expect(try reader.next()?.scenario.get().duration == 2_000_000_000)
        #expect(read == 3)
        let isAtEnd = reader.isAtEnd
        #expect(isAtEnd)
    }
}

/// Texts, and their entries.
private enum Texts {
    static let several: [(String, [String])] = [
        ("{\"duration\":1}", ["1: 1"]),
        ("{\"duration\":1}\n{\"duration\":2}\n", ["1: 1", "2: 2"]),
        ("\r\n\n{\"duration\":1}\r\n\r\n \t{\"duration\":2}", ["3: 1", "5: 2"]),
        ("{\n  \"duration\": 1\n}\n{\n  \"duration\": 2\n}\n", ["1: 1", "4: 2"]),
        ("{\"duration\":1}{\"duration\":2} {\"duration\":3}", ["1: 1", "1: 2", "1: 3"]),
        // A brace at the beginning of a line begins a scenario only where the previous one has ended.
        (
            "{\"duration\":1, \"runs\": [\n{\"mode\":\"m\",\"from\":0,\"until\":1}\n]}\n{\"duration\":2}",
            ["1: 1", "4: 2"]
        ),
    ]

    static let malformed: [(String, [String])] = [
        ("", ["1: line 1, column 1: expected a value, but the file ends"]),
        (" \n ", ["2: line 2, column 2: expected a value, but the file ends"]),
        (
            "{\"duration\":-1}\n{\"duration\":2}\n{\"duration\":3,\n\"runs\":7}",
            [
                "1: line 1, duration: must not be negative", "2: 2",
                "3: line 3, runs: expected an array, found a number",
            ]
        ),
        (
            "nonsense\nmore of it\n[]\n{\"duration\":1}",
            [
                "1: line 1, column 1: expected a value", "2: line 2, column 1: expected a value",
                "3: line 3, top level: expected an object, found an array", "4: 1",
            ]
        ),
        (
            "{\"duration\":1} x\n{\"duration\":2},\n{\"duration\":3}",
            [
                "1: 1", "1: line 1, column 16: expected a value", "2: 2", "2: line 2, column 15: expected a value",
                "3: 3",
            ]
        ),
        // Broken off: the next line that begins with a brace is the next scenario.
        (
            "{\"duration\":1\n{\"duration\":2}",
            ["1: line 1, broken at line 2, column 1: expected ',' or '}' in the object", "2: 2"]
        ),
        (
            "{\"duration\":1,\"runs\":[\n{\"duration\":2}\n{\"duration\":3}",
            ["1: line 1, broken at line 3, column 1: expected ',' or ']' in the array", "2: 2", "3: 3"]
        ),
        (
            "{\"duration\":\"1\n{\"duration\":2}",
            ["1: line 1, column 15: a control character in a string must be escaped", "2: 2"]
        ),
        (
            "{\n  \"duration\":: 1,\n  \"runs\": [\n    { } ]\n}\n{\n  \"duration\": 2\n}",
            ["1: line 1, broken at line 2, column 14: expected a value", "6: 2"]
        ),
        (
            "{\"duration\":1}\n{\"duration\":2",
            ["1: 1", "2: line 2, column 14: expected ',' or '}' in the object, but the file ends"]
        ),
    ]
}
