import ExampleTestSupport
import Glibc
import RunLoopConsole
import RunLoopKit
import RunLoopUnix
import Testing

/// The program on a pseudo terminal.
private final class PseudoTerminal {
    let master: Int32
    let slave: Int32
    private(set) var output: [UInt8] = []
    private(set) var process: pid_t = 0
    private(set) var before = termios()

    init(width: UInt16, height: UInt16) {
        master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
        var (lock, number): (Int32, UInt32) = (0, 0)
        // TIOCSPTLCK and TIOCGPTN, which Swift does not import.
        precondition(ioctl(master, 0x4004_5431, &lock) == 0 && ioctl(master, 0x8004_5430, &number) == 0)
        slave = open("/dev/pts/\(number)", O_RDWR | O_NOCTTY | O_CLOEXEC)
        precondition(slave >= 0)
        resize(width: width, height: height)
        tcgetattr(slave, &before)
        _ = fcntl(master, F_SETFL, O_NONBLOCK)
    }

    deinit {
        if process > 0 { kill(process, SIGKILL) }
        close(master)
        close(slave)
    }

    func resize(width: UInt16, height: UInt16) {
        var size = winsize(ws_row: height, ws_col: width, ws_xpixel: 0, ws_ypixel: 0)
        _ = ioctl(master, UInt(TIOCSWINSZ), &size)
        if process > 0 { kill(process, SIGWINCH) }
    }

    func start(_ arguments: String...) {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for descriptor in 0...2 { posix_spawn_file_actions_adddup2(&actions, slave, Int32(descriptor)) }
        let program = pathOfProgram("runloop-top")
        var pointers = ([program] + arguments).map { strdup($0) } + [nil]
        defer { for pointer in pointers { free(pointer) } }
        // Threads of Dispatch, which run the tests, block signals.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        let status = posix_spawn(&process, program, &actions, &attributes, &pointers, environ)
        precondition(status == 0, "not started (errno \(status))")
    }

    func press(_ keys: String) { _ = write(master, keys, keys.utf8.count) }

    private func readOutput() {
        var part = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = read(master, &part, part.count)
            guard count > 0 else { return }
            output += part[..<count]
        }
    }

    /// The lines of the newest complete screen.
    var lines: [String] {
        readOutput()
        let text = String(decoding: output, as: UTF8.self)
        // Each screen begins at the first place.
        guard let screen = text.components(separatedBy: "\u{1B}[H").dropLast().last else { return [] }
        return screen.components(separatedBy: "\r\n").map { line in
            line.replacing(#/\u{1B}\[[0-9;?]*[A-Za-z]/#, with: "")
        }
    }

    func shows(_ text: String, sourceLocation: SourceLocation = #_sourceLocation) -> Bool {
        eventually("the screen never shows \(text): \(lines)", sourceLocation: sourceLocation) {
            lines.contains { $0.contains(text) }
        }
    }

    /// Waits for the end of the program.
    ///
    /// - Returns: the program's status, as `waitpid` reports it.
    func end() -> Int32 {
        var status: Int32 = 0
        _ = eventually("the program ends") {
            readOutput()
            return waitpid(process, &status, WNOHANG) == process
        }
        process = 0
        readOutput()
        return status
    }

    /// `true` if the terminal is restored, and shows the former screen.
    var isRestored: Bool {
        var now = termios()
        tcgetattr(slave, &now)
        let text = String(decoding: output, as: UTF8.self)
        return now.c_lflag == before.c_lflag && now.c_iflag == before.c_iflag && now.c_oflag == before.c_oflag
            && text.hasSuffix("\u{1B}[?25h\u{1B}[?1049l")
    }

    var isRaw: Bool {
        var now = termios()
        tcgetattr(slave, &now)
        return now.c_lflag & tcflag_t(ICANON | ECHO) == 0
    }
}

extension String {
    fileprivate func components(separatedBy separator: String) -> [String] {
        split(separator: separator, omittingEmptySubsequences: false).map(String.init)
    }
}

@Suite("runloop-top on a terminal", .timeLimit(.minutes(15)))
struct TerminalTests {
    private let folder = TemporaryDirectory()
    private let console: Console
    private let thread: LoopThread

    init() throws {
        console = try Console(at: folder["console"])
        thread = LoopThread(name: "main") { loop in
            loop.add(CustomSource(), forMode: .common)
            let beat = Timer(timeInterval: .milliseconds(50), repeats: true) { _ in }
            beat.name = "beat"
            loop.add(beat, forMode: .default)
            loop.task(name: "sleeper") { try await loop.clock.sleep(for: .seconds(3600)) }
        }
        console.add(thread.remote, named: "main")
    }

    private func run(_ body: (PseudoTerminal) throws -> Void) rethrows {
        defer { thread.stop() }
        try body(PseudoTerminal(width: 120, height: 30))
    }

    @Test("runloop-top shows the loops, obeys keys, follows the size, and restores the terminal")
    func keys() {
        run { terminal in
            terminal.start(folder["console"])
            #expect(terminal.shows("timer \"beat\" (TopTests/TerminalTests.swift:"))
            #expect(terminal.isRaw)
            terminal.press("5")
            #expect(terminal.shows("task \"sleeper\""))
            #expect(terminal.shows("sleeps until"))
            terminal.press("\u{1B}[Z\u{1B}[Z\u{1B}[Z")
            #expect(terminal.shows("every 0.05 seconds"))
            #expect(terminal.lines.count == 30 && terminal.lines.allSatisfy { $0.count == 120 })
            terminal.resize(width: 70, height: 12)
            #expect(eventually { terminal.lines.count == 12 && terminal.lines.allSatisfy { $0.count == 70 } })
            terminal.press("h")
            #expect(terminal.shows("choose a loop"))
            terminal.press("xq")
            #expect(terminal.end() == 0)
            #expect(terminal.isRestored)
        }
    }

    @Test(
        "runloop-top restores the terminal, however it ends",
        arguments: [SIGTERM, SIGINT, SIGHUP, SIGSEGV, SIGABRT, SIGTRAP])
    func signals(signal: Int32) {
        run { terminal in
            terminal.start(folder["console"])
            #expect(terminal.shows("beat"))
            kill(terminal.process, signal)
            let status = terminal.end()
            let isFault = [SIGSEGV, SIGABRT, SIGTRAP].contains(signal)
            #expect(status & 0x7F == (isFault ? signal : 0), "\(status)")
            #expect(terminal.isRestored)
        }
    }

    @Test("runloop-top ends with the daemon, with a sentence and a status")
    func endOfDaemon() {
        run { terminal in
            terminal.start(folder["console"])
            #expect(terminal.shows("beat"))
            console.close()
            #expect(terminal.end() == 1 << 8)
            let text = String(decoding: terminal.output, as: UTF8.self)
            #expect(text.contains("\u{1B}[?1049lError: the console has closed the connection"), "\(text.suffix(200))")
        }
    }

    @Test("--once prints everything, --json each snapshot; without a console there is an error")
    func text() {
        run { terminal in
            terminal.start(folder["console"], "--once")
            #expect(terminal.end() == 0)
            let text = String(decoding: terminal.output, as: UTF8.self)
            #expect(text.contains("main: tasks\r\n") && text.contains("every 0.05 seconds"), "\(text)")
            #expect(!text.contains("\u{1B}"))

            let json = PseudoTerminal(width: 80, height: 24)
            json.start(folder["console"], "--json")
            var lines: [Substring] = []
            #expect(
                eventually {
                    _ = json.lines
                    lines = String(decoding: json.output, as: UTF8.self).split(separator: "\r\n").dropLast()
                    return lines.count >= 3
                })
            for line in lines {
                #expect((try? Console.Snapshot(json: Array(line.utf8)))?.loops.first?.name == "main", "\(line)")
            }

            let lost = PseudoTerminal(width: 80, height: 24)
            lost.start(folder["nowhere"])
            #expect(lost.end() == 1 << 8)
        }
    }
}
