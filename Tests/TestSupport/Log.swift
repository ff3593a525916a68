import Synchronization

/// What happened, in order. Any thread may write.
package final class Log<Entry: Sendable>: Sendable {
    private let state = Mutex<[Entry]>([])

    package init() {}

    package var entries: [Entry] { state.withLock { $0 } }

    package func append(_ entry: Entry) {
        state.withLock { $0.append(entry) }
    }

    package func clear() {
        state.withLock { $0 = [] }
    }
}

/// A log of words is called with each.
extension Log<String> {
    /// All words in a line.
    package var text: String { entries.joined(separator: " ") }

    package func callAsFunction(_ word: String) {
        append(word)
    }
}
