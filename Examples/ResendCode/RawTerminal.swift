import Glibc

/// A terminal that delivers every key at once without an echo, until it is restored. Ctrl-C is a key too, so that it
/// cannot end the program with the terminal left in this state.
struct RawTerminal {
    private let former: termios

    /// Creates the terminal; `nil` if the standard input is not one.
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

    /// Returns the key that was pressed; `nil` at the end of the input.
    func readKey() -> Character? {
        var byte: UInt8 = 0
        return read(STDIN_FILENO, &byte, 1) == 1 ? Character(Unicode.Scalar(byte)) : nil
    }
}
