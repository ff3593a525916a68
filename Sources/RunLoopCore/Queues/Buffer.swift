internal import CShims

/// A growable array with a single owner, in memory of its own.
///
/// An `Array` that is a property of a class checks at each change whether it is shared: ten times for a timer that was
/// added and cancelled. Here an access is an address. Debug builds, which the tests run, check indices. Elements may be
/// moved in memory without notice, so they hold no weak references.
struct Buffer<Element: ~Copyable>: ~Copyable {
    /// The address of the elements, for loops. Valid until an element is appended or removed.
    // Unsafe, but this is the only owner of the memory, and exactly `count` elements are initialized.
    private(set) var base: UnsafeMutablePointer<Element>
    private(set) var capacity = 0
    private(set) var count = 0

    /// The capacity that a buffer keeps when it shrinks.
    private static var leastCapacity: Int { 1024 }

    init() {
        base = Self.nowhere
    }

    deinit {
        base.deinitialize(count: count)
        Self.giveBack(base, capacity)
    }

    /// The address of an empty buffer, which needs no memory.
    private static var nowhere: UnsafeMutablePointer<Element> {
        UnsafeMutablePointer(bitPattern: MemoryLayout<Element>.alignment)!
    }

    var isEmpty: Bool { count == 0 }
    var indices: Range<Int> { 0..<count }

    subscript(index: Int) -> Element {
        @inline(__always) _read {
            assert(index >= 0 && index < count, "a buffer was read beyond its end")
            yield base[index]
        }
        @inline(__always) _modify {
            assert(index >= 0 && index < count, "a buffer was changed beyond its end")
            yield &base[index]
        }
    }

    @inline(__always)
    mutating func append(_ element: consuming Element) {
        if count == capacity { resize(to: max(8, 2 * capacity)) }
        assert(count < capacity, "an element was added beyond the memory of a buffer")
        (base + count).initialize(to: element)
        count += 1
    }

    @inline(__always)
    mutating func removeLast() -> Element {
        assert(count > 0, "an element was taken from an empty buffer")
        count -= 1
        return (base + count).move()
    }

    /// Gives back unneeded memory. Call it after removals. O(1), amortized.
    @inline(__always)
    mutating func shrink() {
        if capacity > Self.leastCapacity && 4 &* count < capacity { resize(to: capacity / 2) }
    }

    @inline(never)
    private mutating func resize(to newCapacity: Int) {
        assert(newCapacity >= count, "a buffer shrinks below its elements")
        if Self.takesOwnPages(capacity) && Self.takesOwnPages(newCapacity) {
            let pages = rlk_resize_pages(base, Self.bytes(capacity), Self.bytes(newCapacity))
            base = Self.checked(pages).assumingMemoryBound(to: Element.self)
            capacity = newCapacity
        } else {
            let former = (base: base, capacity: capacity)
            (base, capacity) = (Self.allocate(newCapacity), newCapacity)
            base.moveInitialize(from: former.base, count: count)
            Self.giveBack(former.base, former.capacity)
        }
    }

    // MARK: Memory

    // A large buffer has pages of its own, which grow and shrink without being copied. When a large block is allocated
    // or freed, the C library first merges all small free blocks: an add and a cancel of one of a million timers took
    // 1.4 times as long, firing in bulk 1.6 times.

    private static func takesOwnPages(_ capacity: Int) -> Bool { bytes(capacity) >= 1 << 14 }

    private static func bytes(_ capacity: Int) -> Int { capacity * MemoryLayout<Element>.stride }

    private static func allocate(_ capacity: Int) -> UnsafeMutablePointer<Element> {
        guard takesOwnPages(capacity) else { return .allocate(capacity: capacity) }
        return checked(rlk_make_pages(bytes(capacity))).bindMemory(to: Element.self, capacity: capacity)
    }

    private static func giveBack(_ base: UnsafeMutablePointer<Element>, _ capacity: Int) {
        if takesOwnPages(capacity) {
            rlk_give_back_pages(base, bytes(capacity))
        } else if capacity > 0 {
            base.deallocate()
        }
    }

    private static func checked(_ pages: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer {
        require(pages != nil, "there is no memory left for the items and calls of a run loop")
        return pages.unsafelyUnwrapped
    }
}

extension Buffer {
    @inline(__always)
    var last: Element? { isEmpty ? nil : base[count - 1] }
}
