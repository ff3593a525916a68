/// Builds JSON text from start to end.
@_spi(Ports) public struct JSONText {
    @_spi(Ports) public let text: String

    private init(text: String) { self.text = text }
    @_spi(Ports) public init(_ number: some BinaryInteger) { text = "\(number)" }
    @_spi(Ports) public init(_ value: Bool) { text = "\(value)" }
    @_spi(Ports) public init(_ string: String?) { text = string.map(quoted) ?? "null" }
    @_spi(Ports) public init(_ strings: [String]) { self = .array(strings.map { JSONText($0) }) }
    /// Seconds on a loop's clock.
    @_spi(Ports) public init(_ instant: RunLoop.Instant?) { text = instant.map { "\($0)" } ?? "null" }
    @_spi(Ports) public init(_ duration: Duration) { self.init(RunLoop.Instant(nanoseconds: 0) + duration) }

    /// Microseconds with three decimals, as in Chrome's tracing.
    @_spi(Ports) public init(microsecondsIn nanoseconds: Int64) {
        let (whole, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1000)
        text = "\(whole)." + padded("\(rest.magnitude)", to: 3)
    }

    @_spi(Ports) public static func array(_ elements: [JSONText]) -> JSONText {
        JSONText(text: "[" + elements.map(\.text).joined(separator: ",") + "]")
    }

    @_spi(Ports) public static func object(_ members: (String, JSONText)...) -> JSONText { object(members) }

    @_spi(Ports) public static func object(_ members: [(String, JSONText)]) -> JSONText {
        JSONText(text: "{" + members.map { "\(quoted($0)):\($1.text)" }.joined(separator: ",") + "}")
    }
}
