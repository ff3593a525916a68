import Testing

@testable import Scenarios

@Suite("Text in XML")
struct XMLTextTests {
    @Test("XML has no place for control characters")
    func controlCharacters() {
        #expect(xmlEscaped("a\u{1}<\"&>é\t") == "a\u{FFFD}&lt;\"&amp;&gt;é\t")
    }
}
