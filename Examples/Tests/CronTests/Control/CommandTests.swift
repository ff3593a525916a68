import Testing

@testable import Cron

@Suite("Commands of the control socket")
struct CommandTests {
    @Test(
        "commands are words with blanks between",
        arguments: [
            ("list", .list), (" status ", .status), ("history", .history), ("reload", .reload), ("show a", .show("a")),
            ("run\tbackup", .run("backup")), ("stop a-b", .stop("a-b")), ("", nil), ("list a", nil), ("show", nil),
            ("show a b", nil), ("LIST", nil), ("quit", nil),
        ] as [(String, Command?)])
    func commands(line: String, command: Command?) {
        #expect(Command(line) == command)
    }
}
