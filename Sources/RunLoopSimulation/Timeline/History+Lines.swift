internal import RunLoopCore

/// A history as lines of text, so that another process can draw it. Tabs separate the fields of a line: the date, the
/// lane, the kind, and the details of that kind.
extension History {
    /// Reads a history from lines, and skips every other line.
    convenience init(_ lines: some Sequence<Substring>) {
        self.init()
        for line in lines {
            let fields = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
            guard fields.count == 5, let nanoseconds = Int64(fields[0]) else { continue }
            let (date, lane, words) = (RunLoop.Instant(nanoseconds: nanoseconds), fields[1], fields[4])
            switch fields[2] {
            case "began": setAlive(true, lane, at: date)
            case "ended": setAlive(false, lane, at: date)
            case "renamed": rename(lane, to: words)
            case "note": record(.note(words, thread: nil), in: lane, at: date)
            case "bytes": record(.message(.bytes(Int(words) ?? 0), from: fields[3]), in: lane, at: date)
            case "lost": record(.message(.lost(Int(words) ?? 0), from: fields[3]), in: lane, at: date)
            case "end": record(.message(.end, from: fields[3]), in: lane, at: date)
            default: continue
            }
        }
    }

    static func line(renaming lane: String, to name: String) -> String {
        line(at: RunLoop.Instant(nanoseconds: 0), lane, "renamed", name)
    }

    fileprivate static func line(
        at date: RunLoop.Instant, _ lane: String, _ what: String, from sender: String = "", _ words: String
    ) -> String {
        ["\(date.nanoseconds)", lane, what, sender, words].map(\.onOneLine).joined(separator: "\t")
    }
}

extension History.Event {
    var line: String {
        switch what {
        case .began: History.line(at: date, lane, "began", "")
        case .ended: History.line(at: date, lane, "ended", "")
        case .note, .loop: History.line(at: date, lane, "note", words)
        case .message(.bytes(let count), let sender): History.line(at: date, lane, "bytes", from: sender, "\(count)")
        case .message(.lost(let count), let sender): History.line(at: date, lane, "lost", from: sender, "\(count)")
        case .message(.end, let sender): History.line(at: date, lane, "end", from: sender, "")
        }
    }

    /// The words in a picture.
    var words: String {
        var (text, thread) = ("", nil as String?)
        switch what {
        case .began, .ended: break
        case .note(let words, let label): (text, thread) = (words, label)
        case .loop(.called(let kind, let name, let origin, _), let label):
            (text, thread) = (RunLoop.words(kind, name, origin), label)
        case .loop(let event, let label): (text, thread) = (event.description, label)
        case .message(.bytes(let count), _): text = count == 1 ? "1 byte" : "\(count) bytes"
        case .message(.end, _): text = "end"
        case .message(.lost(let count), _): text = count == 0 ? "end, lost" : "\(count) bytes, lost"
        }
        if let thread { text = "\(thread): \(text)" }
        return text.onOneLine
    }
}

extension RunLoop {
    /// The words for a called item, with the place where it was made.
    static func words(_ kind: ItemKind, _ name: String?, _ origin: Origin) -> String {
        "\(kind)\(name.map { " \(quoted($0))" } ?? "") (\(origin))"
    }
}

extension String {
    fileprivate var onOneLine: String { map { $0.isNewline || $0 == "\t" ? " " : String($0) }.joined() }
}
