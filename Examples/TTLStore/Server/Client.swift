import RunLoopUnix

/// A connected client.
final class Client {
    // Set at once; its handler needs the client.
    @exclusivity(unchecked) var connection: Connection!
    let session: Session
    let peer: Endpoint
    // Unchecked as in `Server`.
    @exclusivity(unchecked) var parser = RequestParser()
    /// Whether its requests are being carried out.
    @exclusivity(unchecked) var isCurrent = false

    /// Replies that wait until the changes that they report are safe, and notices behind them.
    @exclusivity(unchecked) var held: [UInt8] = []
    /// The position up to which the log must be safe for them. No more requests are carried out meanwhile.
    @exclusivity(unchecked) var heldUntil: Int?
    var isHolding: Bool { heldUntil != nil }
    /// Whether reading from the connection is paused, with some input not carried out.
    @exclusivity(unchecked) var isPaused = false
    /// Whether the peer sends no more.
    @exclusivity(unchecked) var hasEnded = false
    /// Whether the replies so far are the last.
    @exclusivity(unchecked) var isLast = false

    init(_ session: Session, _ peer: Endpoint) {
        self.session = session
        self.peer = peer
    }
}
