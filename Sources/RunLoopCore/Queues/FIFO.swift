/// Elements in the order in which they were appended.
///
/// Elements are moved in and moved out, which an array does not offer: on its way through arrays a posted block was
/// retained and released four times more, and a post took 1,328 instructions, by callgrind, instead of 902. So the
/// queue has memory of its own: the slots from `head` up to `end` hold an element each, the others nothing.
struct FIFO<Element>: ~Copyable {
    private var slots = UnsafeMutableBufferPointer<Element>(start: nil, count: 0)
    private var head = 0
    private var end = 0

    /// The capacity that an empty queue keeps: steady work below it allocates nothing. The excess of a burst is given
    /// back.
    static var keptCapacity: Int { 16_384 }

    deinit {
        _ = slots.extracting(head..<end).deinitialize()
        slots.deallocate()
    }

    var isEmpty: Bool { head == end }
    var count: Int { end - head }

    var capacity: Int { slots.count }

    /// The element at the given offset from the front.
    subscript(index: Int) -> Element {
        @inline(__always) _read {
            assert(index >= 0 && index < count, "a queue was read beyond its end")
            yield slots[head + index]
        }
        @inline(__always) _modify {
            assert(index >= 0 && index < count, "a queue was changed beyond its end")
            yield &slots[head + index]
        }
    }

    /// Returns whether all elements from the given offset on satisfy `condition`.
    @inline(__always)
    func allSatisfy(from index: Int, _ condition: (Element) -> Bool) -> Bool {
        assert(index >= 0 && index <= count, "a queue was searched from beyond its end")
        return slots.extracting(head + index..<end).allSatisfy(condition)
    }

    @inline(__always)
    mutating func append(_ element: consuming Element) {
        if end == slots.count { makeRoom() }
        assert(end < slots.count, "an element was added beyond the memory of a queue")
        slots.initializeElement(at: end, to: element)
        end += 1
    }

    @inline(__always)
    mutating func popFirst() -> Element? {
        guard head < end else { return nil }
        let element = slots.moveElement(from: head)
        head += 1
        if head == end {
            (head, end) = (0, 0)
            if slots.count > Self.keptCapacity { move(to: Self.keptCapacity) }
        }
        return element
    }

    /// Moves the element at the given offset to the front. O(n).
    mutating func moveFirst(from index: Int) {
        assert(index >= 0 && index < count, "an element beyond the end of a queue was moved")
        for place in stride(from: head + index, to: head, by: -1) { slots.swapAt(place, place - 1) }
    }

    /// Makes room for twice the waiting elements.
    @inline(never)
    private mutating func makeRoom() {
        let capacity = max(8, 2 * count)
        guard capacity <= slots.count else { return move(to: capacity) }
        // Half of the room or more has become free at the front.
        let rest = slots.extracting(head..<end)
        _ = slots.moveInitialize(fromContentsOf: rest)
        (head, end) = (0, rest.count)
    }

    @inline(never)
    private mutating func move(to capacity: Int) {
        assert(capacity >= count, "a queue shrinks below its elements")
        let room = UnsafeMutableBufferPointer<Element>.allocate(capacity: capacity)
        _ = room.moveInitialize(fromContentsOf: slots.extracting(head..<end))
        slots.deallocate()
        (slots, head, end) = (room, 0, count)
    }
}
