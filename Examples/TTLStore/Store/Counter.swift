import Synchronization

/// A number that one thread changes, and any thread reads.
struct Counter: ~Copyable, Sendable {
    private let number = Atomic(0)

    @inline(__always)
    var value: Int {
        get { number.load(ordering: .relaxed) }
        nonmutating set { number.store(newValue, ordering: .relaxed) }
    }
}
