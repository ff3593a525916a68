/// A command, with the term of the leader that has received it.
struct Entry: Hashable, Sendable {
    let term: Int
    let command: Command
}

/// The commands of a member, in order. The first entry has the index 1.
struct Log: Sendable {
    private(set) var entries: [Entry] = []

    var lastIndex: Int { entries.count }
    var lastTerm: Int { entries.last?.term ?? 0 }

    /// Returns the term of an entry; 0 before the first, and `nil` after the last.
    func term(at index: Int) -> Int? {
        guard index > 0 else { return 0 }
        return index <= lastIndex ? entries[index - 1].term : nil
    }

    /// Returns the entries from an index on, at most `count`.
    func entries(from index: Int, atMost count: Int) -> [Entry] { Array(entries[(index - 1)...].prefix(count)) }

    subscript(index: Int) -> Entry { entries[index - 1] }

    /// Puts an entry in its place, or after the last; later entries are removed.
    mutating func put(_ entry: Entry, at index: Int) {
        entries.removeSubrange((index - 1)...)
        entries.append(entry)
    }
}
