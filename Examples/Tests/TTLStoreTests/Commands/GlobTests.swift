import Testing

@testable import TTLStore

@Suite("Patterns")
struct GlobTests {
    @Test(
        "patterns match as in Redis",
        arguments: [
            ("*", "", true), ("*", "abc", true), ("a*", "abc", true), ("a*c", "abc", true), ("a*d", "abc", false),
            ("?", "a", true), ("?", "", false), ("a?c", "abc", true), ("[ab]c", "bc", true), ("[^ab]c", "bc", false),
            ("[a-c]", "b", true), ("[c-a]", "b", true), ("[a-c]", "d", false), ("\\*", "*", true), ("\\*", "a", false),
            ("[\\]]", "]", true), ("a[", "a", false), ("[a", "a", true), ("**", "x", true), ("", "", true),
            ("", "a", false), ("*a*b*", "xxaxxbxx", true), ("a\\", "a\\", true), ("[a-", "-", true),
        ])
    func matches(pattern: String, text: String, expected: Bool) {
        #expect(Glob(Array(pattern.utf8)).matches(Array(text.utf8)) == expected, "\(pattern) and \(text)")
    }

    @Test("a pattern of many stars is no work")
    func stars() {
        // An algorithm that tried every star again would never end.
        let pattern = Array(String(repeating: "a*", count: 100).utf8) + [98]
        #expect(!Glob(pattern).matches([UInt8](repeating: 97, count: 5_000)))
    }
}
