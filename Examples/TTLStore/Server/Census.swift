import Synchronization

/// Counts the clients of all loops, and their requests. Any thread.
final class Census: Sendable {
    private let connected = Atomic(0)
    private let accepted = Atomic(0)
    private let loops = Shared<[Performed]>([])

    /// The number of requests that a loop has performed.
    final class Performed: Sendable {
        let requests = Counter()
    }

    /// Adds a loop's counter of requests.
    func join() -> Performed {
        let performed = Performed()
        loops.withLock { $0.append(performed) }
        return performed
    }

    /// Returns a number for a client that has connected.
    func enter() -> Int {
        connected.add(1, ordering: .relaxed)
        return accepted.add(1, ordering: .relaxed).newValue
    }

    func leave() {
        connected.subtract(1, ordering: .relaxed)
    }

    var clients: Int { connected.load(ordering: .relaxed) }
    var served: Int { accepted.load(ordering: .relaxed) }
    var performed: Int { loops.withLock { $0.reduce(0) { $0 + $1.requests.value } } }
}
