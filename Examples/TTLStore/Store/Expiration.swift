import RunLoopKit

/// The end of a key's time to live: a timer of the loop that has begun it.
final class Expiration: @unchecked Sendable {
    // Unchecked: the call is used only on the owner's thread, and the date is accessed while the key is locked.
    let owner: Ledger
    private(set) var date: RunLoop.Instant
    var call: DelayedCall?

    init(at date: RunLoop.Instant, of owner: Ledger) {
        self.date = date
        self.owner = owner
    }

    /// Moves the expiration. Called on the owner's thread.
    func move(to date: RunLoop.Instant) {
        self.date = date
        call?.rearm(at: date)
    }

    /// Ends expirations of one owner, from another thread.
    static func cancel(_ expirations: [Expiration]) {
        expirations.first?.owner.loop.perform(inModes: .common) { _ in
            for expiration in expirations { expiration.call?.cancel() }
        }
    }
}
