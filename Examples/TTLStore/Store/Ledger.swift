import RunLoopKit

/// The counts of a store, readable on all threads. Only its own thread counts.
final class Ledger: Sendable {
    /// The loop of the store.
    let loop: RunLoop.Remote
    /// The net number of bytes added by the store's keys. Removals by another store may make it negative.
    let memory = Counter()
    let expired = Counter()
    let evicted = Counter()
    /// The longest delay of an expiry, in nanoseconds.
    let latestExpiry = Counter()

    init(_ loop: RunLoop.Remote) {
        self.loop = loop
    }
}
