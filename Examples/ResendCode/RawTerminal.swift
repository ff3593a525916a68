import Glibc

/// A terminal that hands over every key at once and does not echo it, until it is restored. Ctrl-C is a key too, so
/// that it cannot end the program with the terminal left like this.
struct RawTerminal {
    private let former: termios

    /// None if the standard input is not a terminal.
    init?() {
        var settings = termios()
        guard tcgetattr(STDIN_FILENO, &settings) == 0 else { return nil }
        former = settings
        settings.c_lflag &= ~tcflag_t(ICANON | ECHO | ISIG)
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &settings)
    }

    func restore() {
        var settings = former
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &settings)
    }

    /// The key that was pressed; none at the end of the input.
    func readKey() -> Character? {
        var byte: UInt8 = 0
        return read(STDIN_FILENO, &byte, 1) == 1 ? Character(Unicode.Scalar(byte)) : nil
    }
}
