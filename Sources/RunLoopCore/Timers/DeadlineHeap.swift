/// A 4-ary implicit heap of deadlines. Which of two equal ones is first is for its owner to say.
///
/// Insertion and removal of the top cost O(log n).
struct DeadlineHeap {
    // 16 bytes, so that the four children of an entry lie in one line of the cache.
    struct Entry {
        var deadline: RunLoop.Instant
        var slot: Int32
    }

    private(set) var entries: ContiguousArray<Entry> = []

    var top: Entry? { entries.first }
    var count: Int { entries.count }

    /// Says which of two slots comes first when their deadlines are equal.
    typealias TieBreak = (_ left: Int32, _ right: Int32) -> Bool

    @inline(__always)
    mutating func insert(_ entry: Entry, _ breakTie: TieBreak) {
        entries.append(entry)
        siftUp(breakTie)
    }

    @inline(__always)
    mutating func removeTop(_ breakTie: TieBreak) {
        let last = entries.removeLast()
        if !entries.isEmpty { replaceTop(last, breakTie) }
    }

    @inline(__always)
    mutating func replaceTop(_ entry: Entry, _ breakTie: TieBreak) {
        entries[0] = entry
        siftDown(from: 0, breakTie)
    }

    /// Removes everything, and gives back memory that is more than a little.
    mutating func removeAll() {
        entries.removeAll(keepingCapacity: entries.capacity <= 1024)
    }

    /// Keeps the entries that `isKept` names, puts them in order again, and gives back memory that is not needed. O(n).
    @inline(__always)
    mutating func sweep(keeping isKept: (Entry) -> Bool, _ breakTie: TieBreak) {
        entries.removeAll { !isKept($0) }
        if entries.capacity > 4 * entries.count + 1024 { entries = ContiguousArray(entries[...].map { $0 }) }
        guard entries.count > 1 else { return }
        for index in stride(from: (entries.count - 2) / 4, through: 0, by: -1) { siftDown(from: index, breakTie) }
    }

    // The loops below work on the memory of the array, without checks of bounds and of whether it is shared at each step:
    // sifting down was half of the instructions of firing one of 10,000 timers (1,740 of 3,287). Every index is less than
    // the count.

    @inline(__always)
    private mutating func siftUp(_ breakTie: TieBreak) {
        entries.withUnsafeMutableBufferPointer { entries in
            var index = entries.count - 1
            let entry = entries[index]
            while index > 0 {
                let parent = (index - 1) / 4
                guard Self.isBefore(entry, entries[parent], breakTie) else { break }
                entries[index] = entries[parent]
                index = parent
            }
            entries[index] = entry
        }
    }

    @inline(__always)
    private mutating func siftDown(from start: Int, _ breakTie: TieBreak) {
        entries.withUnsafeMutableBufferPointer { entries in
            var index = start
            let entry = entries[index]
            while true {
                let first = 4 * index + 1
                guard first < entries.count else { break }
                var least = first
                var child = first + 1
                let end = min(first + 4, entries.count)
                while child < end {
                    if Self.isBefore(entries[child], entries[least], breakTie) { least = child }
                    child += 1
                }
                guard Self.isBefore(entries[least], entry, breakTie) else { break }
                entries[index] = entries[least]
                index = least
            }
            entries[index] = entry
        }
    }

    @inline(__always)
    private static func isBefore(_ left: Entry, _ right: Entry, _ breakTie: TieBreak) -> Bool {
        left.deadline != right.deadline ? left.deadline < right.deadline : breakTie(left.slot, right.slot)
    }

    /// Traps unless every entry is behind its parent.
    func checkInvariants(_ breakTie: TieBreak) {
        for index in entries.indices.dropFirst() {
            let isBefore = Self.isBefore(entries[index], entries[(index - 1) / 4], breakTie)
            precondition(!isBefore, "a heap entry is ahead of its parent")
        }
    }
}
