import ArgumentParser
import Glibc
import RunLoopConsole
import RunLoopKit
import RunLoopUnix

@main
struct TopCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "runloop-top",
        abstract: "Shows the loops of a process, live: what they do, what blocks them, and what their tasks wait for.",
        discussion: "The process has a Console at a path. Keys are those of htop; h shows them.")

    @Argument(help: "The path of the console's socket.")
    var path: String

    @Flag(help: "Print everything once, as text.")
    var once = false

    @Flag(help: "Print each snapshot as a line of JSON, as it comes.")
    var json = false

    func validate() throws {
        guard !once || !json else { throw ValidationError("--once and --json exclude each other.") }
    }

    func run() throws {
        let loop = RunLoop.current
        let watch = Watch(loop)
        let address = try Endpoint(path: path)
        if json {
            watch.connect(to: address) { write("\($0)\n") }
        } else if once {
            // Rates need two answers of the loops, and growth four.
            var count = 0
            watch.connect(to: address) { line in
                count += 1
                guard count == 5, let snapshot = watch.snapshot(line) else { return }
                print(Tables.text(snapshot), terminator: "")
                loop.stop()
            }
        } else {
            guard isatty(STDIN_FILENO) == 1, isatty(STDOUT_FILENO) == 1 else {
                throw ValidationError("This is no terminal; --once and --json print to anything.")
            }
            try show(watch, address)
        }
        loop.run(in: .default)
        if let failure = watch.failure { throw Failure(description: failure) }
    }

    private func show(_ watch: Watch, _ address: Endpoint) throws {
        let loop = RunLoop.current
        var screen = Screen()
        var terminal: Terminal!
        func draw() {
            let size = terminal.size
            terminal.draw(screen.lines(width: size.width, height: size.height))
        }
        watch.ended = {
            terminal.end()
            loop.stop()
        }
        terminal = try Terminal(
            on: loop,
            press: { key in
                if screen.press(key) { draw() } else { watch.end() }
            }, resized: draw, end: watch.end)
        watch.connect(to: address) { line in
            guard let snapshot = watch.snapshot(line) else { return }
            screen.show(snapshot)
            draw()
        }
        draw()
    }
}

/// The reason why the program has ended before it was asked to.
private struct Failure: Error, CustomStringConvertible {
    let description: String
}

/// The connection to a console.
private final class Watch {
    private let loop: RunLoop
    private var connection: RunLoopUnix.Connection?
    /// Called once, when there is nothing more to see.
    var ended: () -> Void
    private(set) var failure: String?

    init(_ loop: RunLoop) {
        self.loop = loop
        ended = { loop.stop() }
    }

    func connect(to address: Endpoint, _ receive: @escaping (String) -> Void) {
        Connection.connect(
            to: address, on: loop, limits: limits,
            receive: Framing.lines(upTo: 16 << 20) { _, line in
                receive(line.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) })
            },
            completion: { [self] result in
                do {
                    let connection = try result.get()
                    self.connection = connection
                    connection.closeHandler = { [self] _, reason in
                        if self.connection != nil { fail("the console has closed the connection (\(reason))") }
                    }
                    try connection.start()
                } catch {
                    fail("\(error)")
                }
            })
    }

    private var limits: RunLoopUnix.Connection.Limits {
        var limits = RunLoopUnix.Connection.Limits()
        limits.maximumInput = 32 << 20
        return limits
    }

    func snapshot(_ line: String) -> Console.Snapshot? {
        do { return try Console.Snapshot(json: Array(line.utf8)) } catch {
            fail("the console sent something else than a snapshot: \(error)")
            return nil
        }
    }

    private func fail(_ text: String) {
        failure = failure ?? text
        end()
    }

    func end() {
        let connection = connection
        self.connection = nil
        connection?.close()
        let ended = ended
        self.ended = {}
        ended()
    }
}
