/// A line of the screen: pieces of text, each with a style.
struct Line: Equatable {
    enum Style: String {
        case plain = "0"
        case bold = "1"
        case dim = "2"
        case chosen = "7"
        case header = "1;7"
        case warning = "1;31"
    }

    private(set) var pieces: [(text: String, style: Style)] = []

    init(_ text: String = "", _ style: Style = .plain) { append(text, style) }

    mutating func append(_ text: String, _ style: Style = .plain) {
        guard !text.isEmpty else { return }
        pieces.append((printable(text), style))
    }

    var text: String { pieces.map(\.text).joined() }

    /// Returns the line with exactly the given width, cut or padded in the style of its end.
    func fitted(to width: Int) -> Line {
        var (line, rest) = (Line(), width)
        for (text, style) in pieces where rest > 0 {
            let part = String(text.prefix(rest))
            line.pieces.append((part, style))
            rest -= part.count
        }
        if rest > 0 { line.append(String(repeating: " ", count: rest), line.pieces.last?.style ?? .plain) }
        return line
    }

    /// Returns the whole line in one style.
    func styled(_ style: Style) -> Line { Line(text, style) }

    /// The text with the escapes of a terminal.
    var escaped: String { pieces.map { "\u{1B}[\($0.style.rawValue)m\($0.text)" }.joined() + "\u{1B}[0m" }

    static func == (left: Line, right: Line) -> Bool {
        left.pieces.elementsEqual(right.pieces) { $0.text == $1.text && $0.style == $1.style }
    }
}

/// Returns the text without characters that a terminal would obey: names in a daemon may have any origin.
func printable(_ text: String) -> String {
    guard text.unicodeScalars.contains(where: isControl) else { return text }
    return String(String.UnicodeScalarView(text.unicodeScalars.map { isControl($0) ? "·" : $0 }))
}

private func isControl(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator: true
    default: false
    }
}
