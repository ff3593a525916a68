/// Builds JSON text from start to end. A value.
@_spi(Ports) public struct JSONText {
    let text: String

    private init(text: String) { self.text = text }
    /// Creates a number.
    @_spi(Ports) public init(_ number: some BinaryInteger) { text = "\(number)" }
    init(_ value: Bool) { text = "\(value)" }
    /// Creates a string; `null` for `nil`.
    @_spi(Ports) public init(_ string: String?) { text = string.map(quoted) ?? "null" }
    init(_ strings: [String]) { self = .array(strings.map { JSONText($0) }) }
    /// Seconds on a loop's clock.
    init(_ instant: RunLoop.Instant?) { text = instant.map { "\($0)" } ?? "null" }
    init(_ duration: Duration) { self.init(RunLoop.Instant(nanoseconds: 0) + duration) }

    /// Microseconds with three decimals, as in Chrome's tracing.
    init(microsecondsIn nanoseconds: Int64) {
        let (whole, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1000)
        text = "\(whole)." + padded("\(rest.magnitude)", to: 3)
    }

    static func array(_ elements: [JSONText]) -> JSONText {
        JSONText(text: "[" + elements.map(\.text).joined(separator: ",") + "]")
    }

    static func object(_ members: (String, JSONText)...) -> JSONText { object(members) }

    static func object(_ members: [(String, JSONText)]) -> JSONText {
        JSONText(text: "{" + members.map { "\(quoted($0)):\($1.text)" }.joined(separator: ",") + "}")
    }
}
