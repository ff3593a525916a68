@_spi(Ports) internal import RunLoopCore

extension TracedEvent {
    init(_ event: History.Event) {
        let (date, lane, words) = (event.date, event.lane, event.words.onOneLine)
        switch event.what {
        case .began: self.init(date: date, lane: lane, kind: .began)
        case .ended: self.init(date: date, lane: lane, kind: .ended)
        case .note(_, let thread): self.init(date: date, lane: lane, thread: thread, kind: .note, words: words)
        case .step(_, let owner): self.init(date: date, lane: lane, owner: owner, kind: .note, words: words)
        case .loop(.called(_, _, let origin, _), let thread):
            let place = Place(file: origin.file, line: Int(origin.line))
            self.init(date: date, lane: lane, thread: thread, kind: .call, words: words, place: place)
        case .loop(_, let thread): self.init(date: date, lane: lane, thread: thread, kind: .ignored, words: words)
        case .message(let message, let sender, _):
            self.init(date: date, lane: lane, kind: .message(message, from: sender), words: words)
        }
    }
}

extension History.Event {
    /// The words of the event in a picture, without the thread.
    fileprivate var words: String {
        switch what {
        case .began, .ended: ""
        case .note(let words, _), .step(let words, _): words
        case .loop(.called(let kind, let name, let origin, _), _): kind.title(name, origin)
        case .loop(let event, _): event.description
        case .message(.bytes(let count), _, let text):
            (count == 1 ? "1 byte" : "\(count) bytes") + (text.map { " \($0)" } ?? "")
        case .message(.end, _, _): "end"
        case .message(.lost(let count), _, let text):
            count == 0 ? "end, lost" : "\(count) bytes, lost" + (text.map { " \($0)" } ?? "")
        }
    }
}

/// Returns the first 48 bytes of a message in quotes, with escapes as in JSON; `nil` if the message is empty or is not
/// text.
func messageText(of bytes: some Collection<UInt8>) -> String? {
    guard !bytes.isEmpty else { return nil }
    var start = Array(bytes.prefix(48))
    let isCut = start.count < bytes.count
    // The cut may be within a character.
    for _ in 0..<4 where isCut && String(validating: start, as: UTF8.self) == nil {
        start.removeLast()
    }
    guard let text = String(validating: start, as: UTF8.self),
        text.unicodeScalars.allSatisfy({
            $0.properties.generalCategory != .control || "\r\n\t".unicodeScalars.contains($0)
        })
    else { return nil }
    return quoted(text) + (isCut ? "…" : "")
}
