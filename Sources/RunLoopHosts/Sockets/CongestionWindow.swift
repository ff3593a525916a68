internal import RunLoopCore

/// The number of bytes that one end of a connection between machines has under way, as TCP limits it. It starts with
/// ten packets, and doubles after each round trip until something is lost; then it halves, and grows by one packet
/// after each round trip.
struct CongestionWindow {
    /// The bytes of a full packet of Ethernet, without its headers.
    static let packet = 1_448
    /// The system's limit.
    static let most = 4 << 20

    private(set) var size = 10 * packet
    /// The size up to which the window doubles.
    private var threshold = Int.max
    /// The bytes that have arrived, and the times when the sender learns of them, the first one first.
    private var acknowledgements: [(count: Int, date: RunLoop.Instant)] = []
    private var unacknowledged = 0

    static func packets(of count: Int) -> Int { max(1, (count + packet - 1) / packet) }

    /// Records that bytes have arrived, of which the sender will learn.
    mutating func bytesArrived(_ count: Int, acknowledgedAt date: RunLoop.Instant) {
        acknowledgements.append((count, max(date, acknowledgements.last?.date ?? date)))
        unacknowledged += count
    }

    /// Returns the number of bytes that may be sent.
    mutating func room(beside underWay: Int, at now: RunLoop.Instant) -> Int {
        while let first = acknowledgements.first, first.date <= now {
            // The window grows only if the sender makes use of it.
            if (underWay + unacknowledged) * 2 > size {
                size += size < threshold ? first.count : Self.packet * first.count / size
                size = min(size, Self.most)
            }
            unacknowledged -= first.count
            acknowledgements.removeFirst()
        }
        return size - underWay - unacknowledged
    }

    /// Returns the time when a quarter of the window will be free, so that the sender does not send ever smaller
    /// pieces; `nil` if that depends on bytes that have not arrived.
    func nextRoom(beside underWay: Int) -> RunLoop.Instant? {
        var room = size - underWay - unacknowledged
        for (count, date) in acknowledgements {
            room += count
            if room >= size / 4 { return date }
        }
        return nil
    }

    /// Reacts to the loss of a packet after which later ones have arrived.
    mutating func halve() {
        threshold = max(size / 2, 2 * Self.packet)
        size = threshold
    }

    /// Reacts to the loss of a packet after which nothing has arrived for a while.
    mutating func collapse() {
        halve()
        size = Self.packet
    }
}

/// The room of a connection's reading end, which grows with the bytes that are read in a round trip, as on Linux.
struct ReceiveWindow {
    /// The room at first.
    static let least = 64 * 1024

    private(set) var size = least
    /// The bytes read in a round trip, and its beginning.
    private var read = 0
    private var beginning = RunLoop.Instant.distantPast

    /// Records that bytes were read: there is room for twice as many as in this round trip, if that is more than ever
    /// before.
    mutating func bytesRead(_ count: Int, at now: RunLoop.Instant, roundTrip: Duration) {
        if now - beginning > roundTrip { (read, beginning) = (0, now) }
        read += count
        size = min(max(size, 2 * read), CongestionWindow.most)
    }
}
