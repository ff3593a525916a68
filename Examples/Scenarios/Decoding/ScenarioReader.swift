/// Reads the scenarios of a text that arrives in pieces: a single one, or many, such as one a line.
///
/// A reader keeps no more of the text at a time than a scenario and a piece, and continues after a malformed scenario.
package struct ScenarioReader {
    /// A scenario, or the error in it.
    package struct Entry {
        /// The line where it begins, counted from 1.
        package let line: Int
        package let scenario: Result<Scenario, ScenarioError>
    }

    private var parser: JSONParser
    private var hasBegun = false

    /// - Parameter read: returns the next piece of the text; an empty one at its end.
    package init(_ read: @escaping () -> [UInt8]) {
        parser = JSONParser(read)
    }

    /// `true` if no more scenarios follow. Reads further if necessary.
    package var isAtEnd: Bool {
        mutating get { !parser.findValue() }
    }

    /// Returns the next scenario; `nil` at the end. A text without any is malformed.
    package mutating func next() -> Entry? {
        guard !isAtEnd || !hasBegun else { return nil }
        hasBegun = true
        let line = parser.line
        let value: JSONValue
        do {
            value = try parser.value()
        } catch {
            parser.skipBrokenValue()
            return Entry(line: line, scenario: .failure(error))
        }
        do {
            return Entry(line: line, scenario: .success(try Scenario(value)))
        } catch {
            let error = ScenarioError("line \(line), \(error.place)", error.reason)
            return Entry(line: line, scenario: .failure(error))
        }
    }
}
