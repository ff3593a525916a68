internal import RunLoopCore

/// The room of a connection's reading end, which grows with the bytes that are read in a round trip, as on Linux.
struct ReceiveWindow {
    /// The room at first.
    static let least = 64 * 1024

    private(set) var size = least
    /// The bytes read in a round trip, and its beginning.
    private var read = 0
    private var beginning = RunLoop.Instant.distantPast

    /// Bytes were read: there is room for twice as many as in this round trip, if that was ever more.
    mutating func bytesRead(_ count: Int, at now: RunLoop.Instant, roundTrip: Duration) {
        if now - beginning > roundTrip { (read, beginning) = (0, now) }
        read += count
        size = min(max(size, 2 * read), CongestionWindow.most)
    }
}
