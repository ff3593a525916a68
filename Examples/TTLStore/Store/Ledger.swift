import RunLoopKit
import Synchronization

/// What a store has counted, for all threads to read. Its own thread alone counts.
final class Ledger: Sendable {
    /// The loop of the store.
    let loop: RunLoop.Remote
    private let counts = Counts()

    private struct Counts: ~Copyable, Sendable {
        let memory = Atomic(0), expired = Atomic(0), evicted = Atomic(0), latestExpiry = Atomic(0)
    }

    init(_ loop: RunLoop.Remote) {
        self.loop = loop
    }

    /// How many bytes its keys have come to take. What another store has taken away may make it less than nothing.
    @inline(__always)
    var memory: Int {
        get { counts.memory.load(ordering: .relaxed) }
        set { counts.memory.store(newValue, ordering: .relaxed) }
    }

    var expired: Int {
        get { counts.expired.load(ordering: .relaxed) }
        set { counts.expired.store(newValue, ordering: .relaxed) }
    }

    var evicted: Int {
        get { counts.evicted.load(ordering: .relaxed) }
        set { counts.evicted.store(newValue, ordering: .relaxed) }
    }

    /// In nanoseconds.
    var latestExpiry: Int {
        get { counts.latestExpiry.load(ordering: .relaxed) }
        set { counts.latestExpiry.store(newValue, ordering: .relaxed) }
    }
}
