import RunLoopKit

/// What a store has counted, for all threads to read. Its own thread alone counts.
final class Ledger: Sendable {
    /// The loop of the store.
    let loop: RunLoop.Remote
    /// How many bytes its keys have come to take. What another store has taken away may make it less than nothing.
    let memory = Counter()
    let expired = Counter()
    let evicted = Counter()
    /// In nanoseconds.
    let latestExpiry = Counter()

    init(_ loop: RunLoop.Remote) {
        self.loop = loop
    }
}
