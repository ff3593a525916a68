internal import Glibc

/// The input and output of a person who steps through a schedule: standard input, or the terminal if standard input is
/// empty, as under `swift test`.
struct Conversation: ~Copyable {
    private var terminal: Terminal?
    private var hasBegun = false

    /// - Returns: the next line; `nil` at the end.
    mutating func read() -> String? {
        defer { hasBegun = true }
        if let terminal { return terminal.read() }
        if let line = readLine() { return line }
        if !hasBegun { terminal = Terminal() }
        return terminal?.read()
    }

    func write(_ lines: String) {
        if let terminal { return terminal.write(lines) }
        print(lines)
        // Output to a pipe is buffered.
        fflush(nil)
    }
}

private final class Terminal {
    private let descriptor: Int32
    private let input: UnsafeMutablePointer<FILE>
    /// The process group that had the terminal before.
    private let former: pid_t

    /// - Returns: `nil` if the process has no terminal.
    init?() {
        descriptor = open("/dev/tty", O_RDWR | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        input = fdopen(descriptor, "r")
        former = tcgetpgrp(descriptor)
        // A background process, such as a test under `swift test`, would be stopped when it reads.
        Self.give(descriptor, to: getpgrp())
    }

    deinit {
        Self.give(descriptor, to: former)
        fclose(input)
    }

    private static func give(_ descriptor: Int32, to group: pid_t) {
        let handler = signal(SIGTTOU, SIG_IGN)
        tcsetpgrp(descriptor, group)
        signal(SIGTTOU, handler)
    }

    func read() -> String? {
        var line: UnsafeMutablePointer<CChar>?
        var size = 0
        defer { free(line) }
        guard getline(&line, &size, input) > 0, let line else { return nil }
        let text = String(cString: line)
        return text.last == "\n" ? String(text.dropLast()) : text
    }

    func write(_ lines: String) {
        let bytes = Array((lines + "\n").utf8)
        Glibc.write(descriptor, bytes, bytes.count)
    }
}
