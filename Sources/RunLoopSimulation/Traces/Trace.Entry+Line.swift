internal import RunLoopCore

/// An entry of a trace as a line of text, so that another process can read it. Tabs separate the fields of a line.
@_spi(Ports) extension Trace.Entry: LosslessStringConvertible {
    public var description: String {
        let fields: [String] =
            switch self {
            case .event(let event):
                [event.kind.fields.word, "\(event.date.nanoseconds)", event.lane, event.thread ?? ""]
                    + [event.kind.fields.detail, event.sender ?? "", event.words, event.place?.file ?? ""]
                    + ["\(event.place?.line ?? 0)", event.owner ?? ""]
            case .choice(let choice):
                [choice.kind.rawValue, "\(choice.date.nanoseconds)", choice.place, "\(choice.step)"]
                    + ["\(choice.usual)", "\(choice.chosen)"]
                    + ["\(choice.range.lowerBound)", "\(choice.range.upperBound)"] + choice.names
            }
        return fields.map(\.onOneLine).joined(separator: "\t")
    }

    /// Creates an entry from a line; `nil` if the line does not describe one.
    public init?(_ line: String) {
        let fields = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
        guard fields.count >= 8, let nanoseconds = Int64(fields[1]) else { return nil }
        let date = RunLoop.Instant(nanoseconds: nanoseconds)
        if let kind = Trace.Choice.Kind(rawValue: fields[0]) {
            let numbers = fields[3..<8].compactMap { Int($0) }
            guard numbers.count == 5, numbers[3] <= numbers[4] else { return nil }
            let (names, range) = (Array(fields[8...]), numbers[3]...numbers[4])
            guard [numbers[1], numbers[2]].allSatisfy(kind == .quantity ? range.contains : names.indices.contains)
            else { return nil }
            self = .choice(
                Trace.Choice(
                    date: date, kind: kind, place: fields[2], step: numbers[0], names: names, range: range,
                    usual: numbers[1], chosen: numbers[2]))
        } else {
            guard fields.count == 10, let kind = Trace.Event.Kind(fields[0], fields[4], from: fields[5]),
                let line = Int(fields[8])
            else { return nil }
            self = .event(
                Trace.Event(
                    date: date, lane: fields[2], thread: fields[3].isEmpty ? nil : fields[3],
                    owner: fields[9].isEmpty ? nil : fields[9], kind: kind,
                    words: fields[6], place: fields[7].isEmpty ? nil : Trace.Place(file: fields[7], line: line)))
        }
    }
}

extension Trace.Event.Kind {
    fileprivate var fields: (word: String, detail: String) {
        switch self {
        case .began: ("began", "")
        case .ended: ("ended", "")
        case .renamed(let name): ("renamed", name)
        case .note: ("note", "")
        case .call: ("call", "")
        case .ignored: ("ignored", "")
        case .message(.bytes(let count), _): ("bytes", "\(count)")
        case .message(.lost(let count), _): ("lost", "\(count)")
        case .message(.end, _): ("end", "")
        }
    }

    fileprivate init?(_ word: String, _ detail: String, from sender: String) {
        switch (word, Int(detail)) {
        case ("began", _): self = .began
        case ("ended", _): self = .ended
        case ("renamed", _): self = .renamed(detail)
        case ("note", _): self = .note
        case ("call", _): self = .call
        case ("ignored", _): self = .ignored
        case ("bytes", let count?): self = .message(.bytes(count), from: sender)
        case ("lost", let count?): self = .message(.lost(count), from: sender)
        case ("end", _): self = .message(.end, from: sender)
        default: return nil
        }
    }
}

extension String {
    /// The text with a space in place of each character that would end a line or a field.
    var onOneLine: String {
        contains { $0.isNewline || $0 == "\t" } ? String(map { $0.isNewline || $0 == "\t" ? " " : $0 }) : self
    }
}
