/// A growable array that nobody shares, in memory of its own.
///
/// An `Array` that is a property of a class asks at each change whether it is shared: ten times for a timer that was
/// added and cancelled. Here an access is an address. Debug builds, which the tests run, check indices.
struct Buffer<Element: ~Copyable>: ~Copyable {
    /// Where the elements are, for loops. Valid until one is appended or removed.
    // Unsafe, but this is the only owner of the memory, and exactly `count` elements are initialized.
    private(set) var base: UnsafeMutablePointer<Element>
    private(set) var capacity = 0
    private(set) var count = 0

    /// The room that a buffer keeps when it shrinks.
    private static var leastCapacity: Int { 1024 }

    init() {
        base = Self.nowhere
    }

    deinit {
        base.deinitialize(count: count)
        if capacity > 0 { base.deallocate() }
    }

    /// Where nothing is: a buffer that holds nothing needs no memory.
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
        (base + count).initialize(to: element)
        count += 1
    }

    @inline(__always)
    mutating func removeLast() -> Element {
        assert(count > 0, "an element was taken from an empty buffer")
        count -= 1
        return (base + count).move()
    }

    /// Gives back memory that is no longer needed. Call it after removals. O(1), amortized.
    @inline(__always)
    mutating func shrink() {
        if capacity > Self.leastCapacity && count < capacity / 4 { resize(to: capacity / 2) }
    }

    @inline(never)
    private mutating func resize(to newCapacity: Int) {
        let larger = UnsafeMutablePointer<Element>.allocate(capacity: newCapacity)
        larger.moveInitialize(from: base, count: count)
        if capacity > 0 { base.deallocate() }
        (base, capacity) = (larger, newCapacity)
    }
}
