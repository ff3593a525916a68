internal import RunLoopCore

/// A history as the events of a trace.
extension History {
    /// Makes a history of events that were recorded, perhaps in another process.
    convenience init(_ events: some Sequence<Trace.Event>) {
        self.init()
        for event in events {
            switch event.kind {
            case .began: setAlive(true, event.lane, at: event.date)
            case .ended: setAlive(false, event.lane, at: event.date)
            case .renamed(let name): rename(event.lane, to: name, at: event.date)
            case .note, .call, .ignored:
                record(.note(event.words, thread: event.thread), in: event.lane, at: event.date)
            case .message(let message, let sender):
                record(.message(message, from: sender), in: event.lane, at: event.date)
            }
        }
    }
}

extension Trace.Event {
    init(_ event: History.Event) {
        var (thread, place) = (nil as String?, nil as Trace.Place?)
        let kind: Kind
        switch event.what {
        case .began: kind = .began
        case .ended: kind = .ended
        case .note(_, let label): (kind, thread) = (.note, label)
        case .loop(.called(_, _, let origin, _), let label):
            (kind, thread) = (.call, label)
            place = Trace.Place(file: origin.file, line: Int(origin.line))
        case .loop(_, let label): (kind, thread) = (.ignored, label)
        case .message(let message, let sender): kind = .message(message, from: sender)
        }
        self.init(
            date: event.date, lane: event.lane, thread: thread, kind: kind, words: event.text.onOneLine, place: place)
    }
}

extension History.Event {
    /// The words in a picture.
    var words: String { (thread.map { "\($0): \(text)" } ?? text).onOneLine }

    private var thread: String? {
        switch what {
        case .note(_, let label), .loop(_, let label): label
        case .began, .ended, .message: nil
        }
    }

    /// The words without the thread.
    fileprivate var text: String {
        switch what {
        case .began, .ended: ""
        case .note(let words, _): words
        case .loop(.called(let kind, let name, let origin, _), _): RunLoop.words(kind, name, origin)
        case .loop(let event, _): event.description
        case .message(.bytes(let count), _): count == 1 ? "1 byte" : "\(count) bytes"
        case .message(.end, _): "end"
        case .message(.lost(let count), _): count == 0 ? "end, lost" : "\(count) bytes, lost"
        }
    }
}

extension RunLoop {
    /// The words for a called item, with the place where it was made.
    static func words(_ kind: ItemKind, _ name: String?, _ origin: Origin) -> String {
        "\(kind)\(name.map { " \(quoted($0))" } ?? "") (\(origin))"
    }
}
