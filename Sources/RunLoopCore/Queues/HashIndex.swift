/// Finds elements that are kept elsewhere, by a word that is the same for equal elements.
///
/// An index holds the place of each element, and leaves comparing to its caller. Finding, inserting and removing are
/// O(1) on average. Memory is taken only to grow, and given back when elements have gone. A `Dictionary` would hold
/// elements a second time, and hash words for which a multiplication is enough.
struct HashIndex: ~Copyable {
    struct Slot {
        /// The upper half of the product that spreads the words. Its highest bits are the index where the search
        /// begins.
        var hash: UInt32 = 0
        var place = Self.nothing

        static let nothing: Int32 = -1
    }

    // A power of two of slots. The search proceeds from slot to slot, up to an empty one; at least a quarter is empty.
    private var slots = Buffer<Slot>()
    private(set) var count = 0

    private static let leastCapacity = 8

    @inline(__always)
    private static func hash(_ word: UInt64) -> UInt32 {
        UInt32(truncatingIfNeeded: ((word ^ word >> 32) &* 0x9e37_79b9_7f4a_7c15) >> 32)
    }

    /// Returns the place of an element with the given word for which `isMeant` holds. `isMeant` may be called with
    /// others.
    @inline(__always)
    func find(_ word: UInt64, where isMeant: (Int) -> Bool) -> Int? {
        guard count > 0 else { return nil }
        assert(count < slots.count, "without an empty slot a search does not end")
        let hash = Self.hash(word)
        var index = start(hash)
        while slots[index].place != Slot.nothing {
            if slots[index].hash == hash, isMeant(Int(slots[index].place)) { return Int(slots[index].place) }
            index = next(index)
        }
        return nil
    }

    /// Adds the place of an element, which must not be in the index.
    mutating func insert(_ place: Int, _ word: UInt64) {
        assert(0...Int(Int32.max) ~= place, "a place does not fit its bits")
        assert(find(word) { $0 == place } == nil, "a place was added twice")
        if 4 * (count + 1) > 3 * slots.count { resize(to: max(Self.leastCapacity, 2 * slots.count)) }
        put(Slot(hash: Self.hash(word), place: Int32(truncatingIfNeeded: place)))
        count += 1
    }

    /// Changes the place of an element, which must be in the index, from `place` to `other`.
    mutating func move(_ place: Int, _ word: UInt64, to other: Int) {
        slots[index(of: place, word)].place = Int32(truncatingIfNeeded: other)
    }

    /// Removes the place of an element, which must be in the index.
    mutating func remove(_ place: Int, _ word: UInt64) {
        assert(count > 0, "a place was removed from an empty index")
        var gap = index(of: place, word)
        // Elements that a search would no longer reach move up into the gap.
        var index = next(gap)
        while slots[index].place != Slot.nothing {
            let distance = (index &- start(slots[index].hash)) & (slots.count &- 1)
            if distance >= (index &- gap) & (slots.count &- 1) {
                slots[gap] = slots[index]
                gap = index
            }
            index = next(index)
        }
        slots[gap] = Slot()
        count -= 1
        if slots.count > Self.leastCapacity && count < slots.count / 8 { resize(to: slots.count / 2) }
    }

    /// Returns the number of slots searched for an element; for tests.
    func steps(to place: Int, _ word: UInt64) -> Int {
        ((index(of: place, word) &- start(Self.hash(word))) & (slots.count &- 1)) + 1
    }

    private func index(of place: Int, _ word: UInt64) -> Int {
        var index = start(Self.hash(word))
        while slots[index].place != Int32(truncatingIfNeeded: place) {
            precondition(slots[index].place != Slot.nothing, "an index has lost an element")
            index = next(index)
        }
        return index
    }

    @inline(__always)
    private func start(_ hash: UInt32) -> Int {
        Int(hash >> UInt32(truncatingIfNeeded: 32 &- slots.count.trailingZeroBitCount))
    }

    @inline(__always)
    private func next(_ index: Int) -> Int { (index &+ 1) & (slots.count &- 1) }

    private mutating func put(_ slot: Slot) {
        assert(slot.place != Slot.nothing, "nothing was put into an index")
        var index = start(slot.hash)
        while slots[index].place != Slot.nothing { index = next(index) }
        slots[index] = slot
    }

    @inline(never)
    private mutating func resize(to capacity: Int) {
        assert(capacity & (capacity - 1) == 0, "the slots are not a power of two")
        assert(4 * count <= 3 * capacity, "an index shrinks below its elements")
        var former = Buffer<Slot>()
        swap(&former, &slots)
        for _ in 0..<capacity { slots.append(Slot()) }
        for index in former.indices where former[index].place != Slot.nothing { put(former[index]) }
    }

    /// Traps unless the count is right, and a search for each element reaches it.
    func checkInvariants() {
        let used = slots.indices.filter { slots[$0].place != Slot.nothing }
        precondition(used.count == count, "an index has lost count of its elements")
        for slot in used {
            var index = start(slots[slot].hash)
            while index != slot {
                precondition(slots[index].place != Slot.nothing, "an element of an index is out of reach")
                index = next(index)
            }
        }
    }
}
