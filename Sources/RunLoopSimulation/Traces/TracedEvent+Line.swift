internal import RunLoopCore

/// An event as a line of text, so that another process can read it. Tabs separate the fields of a line.
@_spi(Ports) extension TracedEvent: LosslessStringConvertible {
    /// The event as a line. O(n) in the length of its texts, in which a space stands for the end of a line.
    public var description: String {
        let fields =
            [kind.fields.word, "\(date.nanoseconds)", lane, thread ?? "", kind.fields.detail, sender ?? "", words]
            + [place?.file ?? "", "\(place?.line ?? 0)", owner ?? ""]
        return fields.map(\.onOneLine).joined(separator: "\t")
    }

    /// Creates an event from a line; `nil` if the line does not describe one.
    public init?(_ line: String) {
        let fields = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
        guard fields.count == 10, let nanoseconds = Int64(fields[1]), let number = Int(fields[8]),
            let kind = Kind(fields[0], fields[4], from: fields[5])
        else { return nil }
        self.init(
            date: RunLoop.Instant(nanoseconds: nanoseconds), lane: fields[2],
            thread: fields[3].isEmpty ? nil : fields[3], owner: fields[9].isEmpty ? nil : fields[9], kind: kind,
            words: fields[6], place: fields[7].isEmpty ? nil : Place(file: fields[7], line: number))
    }
}

extension TracedEvent.Kind {
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
