internal import RunLoopCore

/// The recent connections of each peer, counted.
struct PeerWindows {
    static let most = 16_384

    private let limit: RateLimit
    private var windows: [UInt64: RateWindow] = [:]

    /// The number of known peers.
    var count: Int { windows.count }

    init(limit: RateLimit) {
        self.limit = limit
    }

    /// Counts a connection.
    ///
    /// - Returns: whether the limit allows it.
    mutating func take(_ peer: UInt64, at now: RunLoop.Instant) -> Bool {
        if windows.count == Self.most, windows[peer] == nil {
            windows = windows.filter { !$0.value.hasPassed(at: now) }
            // Each scan at least halves the table, so that a connection costs O(1) on average.
            if windows.count > Self.most / 2 { windows = [:] }
        }
        return windows[peer, default: RateWindow(limit)].take(at: now) == nil
    }
}
