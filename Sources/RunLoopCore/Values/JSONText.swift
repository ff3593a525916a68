/// Builds JSON text from start to end.
package struct JSONText {
    package let text: String

    private init(text: String) { self.text = text }
    package init(_ number: some BinaryInteger) { text = "\(number)" }
    package init(_ value: Bool) { text = "\(value)" }
    package init(_ string: String?) { text = string.map(quoted) ?? "null" }
    package init(_ strings: [String]) { self = .array(strings.map { JSONText($0) }) }
    /// Seconds on a loop's clock.
    package init(_ instant: RunLoop.Instant?) { text = instant.map { "\($0)" } ?? "null" }
    package init(_ duration: Duration) { self.init(RunLoop.Instant(nanoseconds: 0) + duration) }

    /// Microseconds with three decimals, as in Chrome's tracing.
    package init(microsecondsIn nanoseconds: Int64) {
        let (whole, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1000)
        text = "\(whole)." + padded("\(rest.magnitude)", to: 3)
    }

    package static func array(_ elements: [JSONText]) -> JSONText {
        JSONText(text: "[" + elements.map(\.text).joined(separator: ",") + "]")
    }

    package static func object(_ members: (String, JSONText)...) -> JSONText { object(members) }

    package static func object(_ members: [(String, JSONText)]) -> JSONText {
        JSONText(text: "{" + members.map { "\(quoted($0)):\($1.text)" }.joined(separator: ",") + "}")
    }
}
