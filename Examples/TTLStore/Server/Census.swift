import Synchronization

/// Counts the clients of all loops, and what they have asked for. Any thread.
final class Census: Sendable {
    private let connected = Atomic(0)
    private let accepted = Atomic(0)
    private let counters = Shared<[Counter]>([])

    /// A loop's own count. Its thread alone counts.
    final class Counter: Sendable {
        private let number = Atomic(0)

        @inline(__always)
        var count: Int {
            get { number.load(ordering: .relaxed) }
            set { number.store(newValue, ordering: .relaxed) }
        }
    }

    /// A counter for the requests that a loop carries out.
    func counter() -> Counter {
        let counter = Counter()
        counters.withLock { $0.append(counter) }
        return counter
    }

    /// A number for a connection.
    func nextNumber() -> Int { accepted.add(1, ordering: .relaxed).newValue }

    /// Lets a client in, unless there are so many.
    func enter(atMost most: Int) -> Bool {
        guard connected.add(1, ordering: .relaxed).newValue > most else { return true }
        leave()
        return false
    }

    func leave() {
        connected.subtract(1, ordering: .relaxed)
    }

    var clients: Int { connected.load(ordering: .relaxed) }
    var served: Int { accepted.load(ordering: .relaxed) }
    var performed: Int { counters.withLock { $0.reduce(0) { $0 + $1.count } } }
}
