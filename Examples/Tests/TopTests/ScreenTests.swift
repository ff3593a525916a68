import RunLoopConsole
import Testing

@testable import runloop_top

extension Screen {
    /// Presses a key that does not end the program.
    fileprivate mutating func goesOn(_ key: Key) {
        let goesOn = press(key)
        #expect(goesOn)
    }
}

@Suite("The screen of runloop-top")
struct ScreenTests {
    private func screen(_ keys: Key..., loops: Int = 3) throws -> Screen {
        var screen = Screen()
        screen.show(try sampleSnapshot(loops: loops))
        for key in keys { screen.goesOn(key) }
        return screen
    }

    private func text(_ screen: Screen, width: Int = 160, height: Int = 40) -> String {
        screen.lines(width: width, height: height).map(\.text).joined(separator: "\n")
    }

    @Test("troubles are shown with their lines, and a blocked loop comes first")
    func warnings() throws {
        let text = text(try screen())
        #expect(
            text.contains(
                "! deadlock: task \"one\" (App/main.swift:3) awaits task \"other\" (App/main.swift:4) awaits task \"one\" (App/main.swift:3)"
            ))
        #expect(text.contains("! worker is blocked: timer \"stuck\" (App/worker.swift:9) for 3.10 s, waiting"))
        #expect(text.contains("! leaky has more and more: timer \"lost ·[2J\" (App/leaky.swift:2): 40, +39 in 800 ms"))
        let loops = text.split(separator: "\n").dropFirst(2).prefix(3)
        #expect(loops.map { $0.split(separator: " ")[0] } == ["worker", "leaky", "main"])
    }

    @Test(
        "the keys choose loops, sections and orders, as the same keys of htop do",
        arguments: [
            ([], "timer \"stuck\""),
            ([.down, .down, .character("5")], "awaits task \"other\""),
            ([.down, .down, .backTab], "waits for something elsewhere"),
            ([.down, .tab], "timer (App/leaky.swift:1), every 0.5 seconds"),
            ([.down, .tab, .tab], "+39 in 800 ms"),
            ([.down, .tab, .right, .right], "127.0.0.1:4711"),
        ] as [([Key], String)])
    func sections(keys: [Key], shown: String) throws {
        var screen = try screen()
        for key in keys { screen.goesOn(key) }
        #expect(text(screen).split(separator: "\n").dropFirst(9).contains { $0.contains(shown) }, "\(text(screen))")
    }

    @Test("handlers are sorted by time, by their longest call, by calls or by name")
    func orders() throws {
        func first(_ keys: Key...) throws -> String {
            var screen = try screen()
            for key in keys { screen.goesOn(key) }
            // By lateness and by name another loop comes first.
            while screen.loop?.name != "worker", screen.press(.down) {}
            let lines = screen.lines(width: 160, height: 40).map(\.text)
            let heading = try #require(lines.firstIndex { $0.contains("LONGEST") })
            return lines[heading + 1]
        }
        #expect(try first().contains("stuck"))
        #expect(try first(.character("c")).contains("quick"))
        #expect(try first(.character("n")).contains("quick"))
        #expect(try first(.character("l")).contains("stuck"))
        #expect(try first(.function(6), .function(6)).contains("quick"))
        #expect(try first(.character("c"), .character("t")).contains("stuck"))
    }

    @Test("a filter shows lines with a text, whatever its case; Escape shows all")
    func filter() throws {
        var screen = try screen(.character("/"), .character("Q"), .character("u"), .character("x"), .backspace)
        #expect(text(screen).hasSuffix("Filter: Qu_" + String(repeating: " ", count: 149)))
        screen.goesOn(.enter)
        func handlers() -> [Substring] {
            text(screen).split(separator: "\n").filter { $0.contains("App/worker.swift:5") }
        }
        #expect(handlers().count == 1 && !text(screen).contains("3.10 s  timer \"stuck\""))
        screen.goesOn(.escape)
        #expect(text(screen).contains("3.10 s  timer \"stuck\""))
        // While the filter is typed, letters are no commands.
        for key in [Key.function(4), .character("q"), .escape] { screen.goesOn(key) }
        #expect(screen.filter.isEmpty)
    }

    @Test("a pause keeps the screen; q, F10 and Ctrl-C end the program")
    func pause() throws {
        var screen = try screen(.character(" "))
        screen.show(try sampleSnapshot(number: 2, loops: 5))
        #expect(text(screen).contains("3 loops") && text(screen).contains("paused"))
        screen.goesOn(.character(" "))
        screen.show(try sampleSnapshot(number: 2, loops: 5))
        #expect(text(screen).contains("5 loops") && !text(screen).contains("paused"))
        for key in [Key.character("q"), .function(10), .interrupt] {
            let goesOn = screen.press(key)
            #expect(!goesOn)
        }
        screen.goesOn(.character("h"))
        #expect(text(screen).contains("choose a loop"))
        screen.goesOn(.character("q"))
        #expect(!text(screen).contains("choose a loop"))
    }

    @Test("a screen of any size has exactly its lines and columns", arguments: [1, 2, 5, 24, 80], [1, 7, 80, 200])
    func sizes(height: Int, width: Int) throws {
        for keys in [[Key](), [.character("h")], [.character("/")], [.tab, .pageDown, .pageDown]] {
            var screen = try screen(loops: 30)
            for key in keys { screen.goesOn(key) }
            let lines = screen.lines(width: width, height: height)
            #expect(lines.count == height && lines.allSatisfy { $0.text.count == width })
            #expect(lines.allSatisfy { !$0.text.unicodeScalars.contains { $0.value < 32 || $0.value == 127 } })
        }
        #expect(Screen().lines(width: width, height: height).count == height)
    }

    @Test("the chosen loop is among those that are shown, however many there are")
    func many() throws {
        var screen = try screen(loops: 30)
        for _ in 0..<40 {
            let shown = screen.lines(width: 160, height: 24).filter { $0.pieces.first?.style == .chosen }
            #expect(shown.contains { $0.text.hasPrefix(screen.loop!.name) })
            screen.goesOn(.down)
        }
        #expect(screen.loop?.name == screen.loops.last?.name)
    }

    @Test("the text has everything")
    func once() throws {
        let text = Tables.text(try sampleSnapshot())
        #expect(text.hasPrefix("daemon, process 4711\n! deadlock: "))
        for part in ["worker: handlers\n", "leaky: connections\n", "main: tasks\n", "127.0.0.1:4711", "BLOCKED"] {
            #expect(text.contains(part))
        }
        #expect(!text.contains("\u{1B}"))
    }
}

@Suite("Keys and figures")
struct KeyTests {
    @Test(
        "sequences of terminals are keys, in whatever pieces they come",
        arguments: [
            ("\u{1B}[A\u{1B}[B\u{1B}OC\u{1B}[D", [.up, .down, .right, .left]),
            ("\u{1B}OP\u{1B}[21~\u{1B}[[D\u{1B}[17~", [.function(1), .function(10), .function(4), .function(6)]),
            (
                "q/ä\t\u{1B}[Z\r\u{7F}",
                [.character("q"), .character("/"), .character("ä"), .tab, .backTab, .enter, .backspace]
            ),
            ("\u{1B}[5~\u{1B}[6~\u{1B}[1;5A\u{3}", [.pageUp, .pageDown, .up, .interrupt]),
            ("\u{1B}x", [.escape, .character("x")]),
        ] as [(String, [Key])])
    func keys(text: String, keys: [Key]) {
        for size in 1...4 {
            var (reader, found, bytes) = (KeyReader(), [Key](), Array(text.utf8)[...])
            while !bytes.isEmpty {
                found += reader.read(Array(bytes.prefix(size)))
                bytes = bytes.dropFirst(size)
            }
            #expect(found == keys, "in pieces of \(size)")
        }
    }

    @Test("an escape that nothing follows is the key")
    func escape() {
        var reader = KeyReader()
        #expect(reader.read([0x1B]) == [] && reader.isWaiting)
        #expect(reader.timedOut() == [.escape] && !reader.isWaiting)
        #expect(reader.read(Array("q".utf8)) == [.character("q")])
    }

    @Test("bytes that are no keys do no harm")
    func noise() {
        var reader = KeyReader()
        for byte in 0...255 { _ = reader.read([UInt8(byte), 0x1B, UInt8(255 - byte)]) }
        _ = reader.read([UInt8](repeating: 0x1B, count: 100) + Array("[".utf8) + [UInt8](repeating: 0x31, count: 100))
        _ = reader.timedOut()
        #expect(reader.read(Array("q".utf8)).last == .character("q"))
    }

    @Test(
        "times have a unit and three digits",
        arguments: [
            (0, "0"), (1.5e-8, "15 ns"), (1.234e-5, "12.3 µs"), (0.000999, "999 µs"), (0.0012, "1.20 ms"),
            (3.1, "3.10 s"),
            (59.94, "59.9 s"), (3600, "60.0 min"), (1e9, "277778 h"), (-0.25, "-250 ms"), (9.996, "10.0 s"),
            (0.99996, "1.00 s"), (99.96, "100 s"),
        ])
    func times(seconds: Double, text: String) { #expect(Figures.time(seconds) == text) }
}
