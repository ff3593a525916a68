import Glibc

/// A terminal that delivers every key at once and echoes none.
final class Terminal {
    enum Key {
        case more, less, end
    }

    private var found = termios()

    /// Creates the terminal; `nil` if input or output is no terminal.
    init?() {
        guard isatty(STDIN_FILENO) == 1, isatty(STDOUT_FILENO) == 1, tcgetattr(STDIN_FILENO, &found) == 0 else {
            return nil
        }
        var raw = found
        // Ctrl-C is an ordinary key, so that it does not end the program with the terminal left in this state.
        raw.c_lflag &= ~tcflag_t(ECHO | ICANON | ISIG)
        tcsetattr(STDIN_FILENO, TCSANOW, &raw)
    }

    func restore() {
        print()
        tcsetattr(STDIN_FILENO, TCSANOW, &found)
    }

    /// Returns the keys that have been pressed; the end of the input counts as the key that quits.
    func readKeys() -> [Key] {
        var bytes: [UInt8] = Array(repeating: 0, count: 64)
        let count = read(STDIN_FILENO, &bytes, bytes.count)
        guard count > 0 else { return [.end] }
        return bytes.prefix(count).compactMap { byte in
            switch byte {
            // The arrow keys come as ESC [ A and ESC [ B; 3 and 4 are Ctrl-C and Ctrl-D.
            case UInt8(ascii: "+"), UInt8(ascii: "A"): .more
            case UInt8(ascii: "-"), UInt8(ascii: "B"): .less
            case UInt8(ascii: "q"), 3, 4: .end
            default: nil
            }
        }
    }

    func redraw(_ line: String) {
        print("\r\u{1b}[K\(line)", terminator: "")
        fflush(nil)
    }
}
