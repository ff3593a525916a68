import Glibc
import RunLoopKit
import RunLoopUnix

/// The terminal of the program: keys arrive as they are pressed, and the screen is an alternate one. The terminal is
/// restored when the program ends, except by SIGKILL.
final class Terminal {
    private let loop: RunLoop
    private var reader = KeyReader()
    private var source: DescriptorSource?
    private var signals: [SignalSource] = []
    private var escape: DelayedCall?

    /// - Parameters:
    ///   - press: called with each key.
    ///   - resized: called when the size has changed.
    ///   - end: called when a signal, or the end of the terminal, ends the program.
    init(
        on loop: RunLoop, press: @escaping (Key) -> Void, resized: @escaping () -> Void, end: @escaping () -> Void
    ) throws {
        self.loop = loop
        Restoration.begin()
        let source = DescriptorSource(fileDescriptor: STDIN_FILENO, events: .readable) { [unowned self] _, _ in
            var bytes = [UInt8](repeating: 0, count: 256)
            let count = read(STDIN_FILENO, &bytes, bytes.count)
            guard count > 0 else { return end() }
            pass(on: reader.read(Array(bytes[..<count])), to: press)
        }
        try loop.add(source, forMode: .default)
        self.source = source
        for signal in [Signal.interrupt, .terminate, .hangUp, .quit] {
            let source = try SignalSource(signal: signal) { _ in end() }
            signals.append(source)
        }
        signals.append(try SignalSource(signal: .windowChange) { _ in resized() })
        for source in signals { try loop.add(source, forMode: .default) }
    }

    private func pass(on keys: [Key], to press: @escaping (Key) -> Void) {
        escape?.cancel()
        for key in keys { press(key) }
        guard reader.isWaiting else { return }
        escape = loop.perform(afterDelay: .milliseconds(50)) { [unowned self] in
            for key in reader.timedOut() { press(key) }
        }
    }

    /// The number of columns and lines.
    var size: (width: Int, height: Int) {
        var size = winsize()
        guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else {
            return (80, 24)
        }
        return (Int(size.ws_col), Int(size.ws_row))
    }

    func draw(_ lines: [Line]) {
        write("\u{1B}[H" + lines.map(\.escaped).joined(separator: "\r\n"))
    }

    func end() {
        source?.invalidate()
        for signal in signals { signal.invalidate() }
        Restoration.end()
    }
}

/// Writes all of a text to the standard output.
func write(_ text: String) {
    var bytes = Array(text.utf8)[...]
    while !bytes.isEmpty {
        let count = bytes.withUnsafeBytes { Glibc.write(STDOUT_FILENO, $0.baseAddress, $0.count) }
        if count < 0, errno != EINTR, errno != EAGAIN { return }
        bytes = bytes.dropFirst(max(0, count))
    }
}

/// The former state of the terminal, restored when the program ends, perhaps by a fault.
private enum Restoration {
    // Unsafe, but set once, before anything that reads them can happen.
    nonisolated(unsafe) private static var former = termios()
    nonisolated(unsafe) private static var isNeeded = false
    private static let ending: StaticString = "\u{1B}[0m\u{1B}[?25h\u{1B}[?1049l"

    static func begin() {
        guard tcgetattr(STDIN_FILENO, &former) == 0 else { return }
        isNeeded = true
        atexit { Restoration.end() }
        for signal in [SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV] {
            var action = sigaction()
            action.__sigaction_handler.sa_handler = { signal in
                Restoration.end()
                raise(signal)
            }
            action.sa_flags = Int32(bitPattern: UInt32(SA_RESETHAND)) | SA_NODEFER
            sigaction(signal, &action, nil)
        }
        var raw = former
        cfmakeraw(&raw)
        tcsetattr(STDIN_FILENO, TCSANOW, &raw)
        write("\u{1B}[?1049h\u{1B}[?25l\u{1B}[2J")
    }

    /// Restores the terminal, using only calls that a signal handler may make.
    static func end() {
        guard isNeeded else { return }
        isNeeded = false
        tcsetattr(STDIN_FILENO, TCSANOW, &former)
        _ = Glibc.write(STDOUT_FILENO, ending.utf8Start, ending.utf8CodeUnitCount)
    }
}
