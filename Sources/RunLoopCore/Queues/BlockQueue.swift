/// A closure that waits for one of its modes. `Loop` is what runs it.
struct Block<Loop: AnyObject> {
    let modes: RunLoop.Modes
    let body: (Loop) -> Void
    let origin: RunLoop.Origin

    /// Whether it runs in `mode`, which is one of the common modes or is not.
    @inline(__always)
    func runs(in mode: RunLoop.Mode, isCommon: Bool) -> Bool {
        (isCommon && modes.includesCommon) || modes.includesEvery || modes.explicit.contains(mode)
    }
}

/// Blocks that wait, in the order in which they came.
///
/// They are moved in and moved out, which an array does not offer: on its way through arrays a posted block was
/// retained and released four times more, now it is released once; a post takes 902 instructions and not 1,328, counted
/// by callgrind. So the memory is the queue's own: the slots from `head` up to `end` hold a block each, the others
/// nothing.
struct BlockQueue<Loop: AnyObject>: ~Copyable {
    private var slots = UnsafeMutableBufferPointer<Block<Loop>>(start: nil, count: 0)
    private var head = 0
    private var end = 0

    deinit {
        _ = slots.extracting(head..<end).deinitialize()
        slots.deallocate()
    }

    var isEmpty: Bool { head == end }
    var count: Int { end - head }

    /// What it has room for without an allocation.
    var capacity: Int { slots.count }

    mutating func append(_ block: consuming Block<Loop>) {
        if end == slots.count { makeRoom() }
        slots.initializeElement(at: end, to: block)
        end += 1
    }

    mutating func popFirst() -> Block<Loop>? {
        guard head < end else { return nil }
        let block = slots.moveElement(from: head)
        head += 1
        if head == end { (head, end) = (0, 0) }
        return block
    }

    func contains(where isMatch: (Block<Loop>) -> Bool) -> Bool {
        slots.extracting(head..<end).contains(where: isMatch)
    }

    func map<Result>(_ transform: (Block<Loop>) -> Result) -> [Result] {
        slots.extracting(head..<end).map(transform)
    }

    /// Doubles the room, and moves what waits to its beginning.
    @inline(never)
    private mutating func makeRoom() {
        let more = UnsafeMutableBufferPointer<Block<Loop>>.allocate(capacity: max(8, 2 * slots.count))
        _ = more.moveInitialize(fromContentsOf: slots.extracting(head..<end))
        slots.deallocate()
        (slots, head, end) = (more, 0, count)
    }
}
