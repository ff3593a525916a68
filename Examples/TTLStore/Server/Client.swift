import RunLoopUnix

/// A connected client.
final class Client {
    let connection: Connection
    let session: Session
    let peer: Endpoint
    // Unchecked as in `Server`.
    @exclusivity(unchecked) var parser = RequestParser()
    /// `true` while the client's requests are being performed.
    @exclusivity(unchecked) var isCurrent = false

    /// Replies that wait until the changes that they report are safe, and later notices.
    @exclusivity(unchecked) var held: [UInt8] = []
    /// The position up to which the log must be safe for the held replies. No more requests are performed meanwhile.
    @exclusivity(unchecked) var heldUntil: Int?
    var isHolding: Bool { heldUntil != nil }
    /// `true` while reading from the connection is paused, with some input not performed.
    @exclusivity(unchecked) var isPaused = false
    /// `true` once the peer sends no more.
    @exclusivity(unchecked) var hasEnded = false
    /// `true` if the replies so far are the last.
    @exclusivity(unchecked) var isLast = false

    init(_ session: Session, _ connection: Connection, _ peer: Endpoint) {
        self.session = session
        self.connection = connection
        self.peer = peer
    }
}
