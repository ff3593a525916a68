import Testing

/// The path of the attacks in Python, beside this file.
private let attack = #filePath.replacing("ScriptedAttackTests.swift", with: "attack")

/// Attacks by a script. Each has a daemon of its own, and looks at its memory, its connections and its end.
@Suite("Attacks by a script", .serialized, .timeLimit(.minutes(15)))
struct ScriptedAttackTests {
    @Test("each limit ends its attack, in bounded memory", arguments: [1, 2], [false, true])
    func attacks(threads: Int, hasTLS: Bool) throws {
        let run = try output(
            of: "/usr/bin/python3", [attack, pathOfProgram("Web"), "\(threads)", hasTLS ? "1" : "0"])
        #expect(run.text == "passed\n" && run.failure == nil, "\(run.text)")
    }
}
