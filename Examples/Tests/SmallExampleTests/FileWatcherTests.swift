import Testing

@testable import FileWatcher

@Suite("The example that watches files")
struct FileWatcherTests {
    @Test("a name is one line, and moves no cursor")
    func shownNames() {
        #expect(shown("main.swift") == "main.swift" && shown("Überblick 日本.swift") == "Überblick 日本.swift")
        #expect(shown("a\nsaved b\r") == #"a\nsaved b\r"#)
        #expect(shown("\u{1B}[2J\u{7F}\u{9B}1A\0") == #"\u{1B}[2J\u{7F}\u{009B}1A\0"#)
    }
}
