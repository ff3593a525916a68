/// A 4-ary implicit heap of deadlines. Equal deadlines leave in the order in which they were armed.
///
/// An entry that has been superseded stays until it reaches the top or is swept out; who put it there knows whether it
/// is still meant (see ``TimerQueue``). Insertion and removal of the top cost O(log n).
struct DeadlineHeap {
    struct Entry {
        var deadline: RunLoop.Instant
        var order: UInt64
        var slot: Int32
        /// Which arming of the slot this entry belongs to.
        var version: UInt32

        static func < (left: Entry, right: Entry) -> Bool {
            left.deadline != right.deadline ? left.deadline < right.deadline : left.order < right.order
        }
    }

    private(set) var entries: ContiguousArray<Entry> = []

    var top: Entry? { entries.first }
    var count: Int { entries.count }

    mutating func insert(_ entry: Entry) {
        entries.append(entry)
        siftUp(from: entries.count - 1)
    }

    mutating func removeTop() {
        let last = entries.removeLast()
        guard !entries.isEmpty else { return }
        entries[0] = last
        siftDown(from: 0)
    }

    /// Keeps the entries that `isLive` names, and puts them in order again. O(n).
    mutating func sweep(keeping isLive: (Entry) -> Bool) {
        entries.removeAll { !isLive($0) }
        guard entries.count > 1 else { return }
        for index in stride(from: (entries.count - 2) / 4, through: 0, by: -1) { siftDown(from: index) }
    }

    private mutating func siftUp(from start: Int) {
        var index = start
        let entry = entries[index]
        while index > 0 {
            let parent = (index - 1) / 4
            guard entry < entries[parent] else { break }
            entries[index] = entries[parent]
            index = parent
        }
        entries[index] = entry
    }

    private mutating func siftDown(from start: Int) {
        var index = start
        let entry = entries[index]
        while true {
            let first = 4 * index + 1
            guard first < entries.count else { break }
            var least = first
            for child in first + 1..<max(first + 1, min(first + 4, entries.count))
            where entries[child] < entries[least] {
                least = child
            }
            guard entries[least] < entry else { break }
            entries[index] = entries[least]
            index = least
        }
        entries[index] = entry
    }

    /// Traps unless every entry is behind its parent.
    func checkInvariants() {
        for index in entries.indices.dropFirst() {
            precondition(!(entries[index] < entries[(index - 1) / 4]), "a heap entry is ahead of its parent")
        }
    }
}
