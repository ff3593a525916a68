/// The blocks that wait until output is sent.
struct SentNotices<Notice> {
    private var waiting: [(end: Int, body: Notice)] = []
    /// The number of bytes that were sent since the first notice.
    private var sent = 0

    /// Adds a block for the bytes that wait now; `nil` if they will not be sent.
    mutating func add(after pending: Int?, _ body: Notice) {
        waiting.append((pending.map { sent + $0 } ?? .max, body))
    }

    mutating func note(sent count: Int) { sent += count }

    var isEmpty: Bool { waiting.isEmpty }

    /// The next block whose bytes are sent.
    mutating func next() -> Notice? {
        guard let first = waiting.first, first.end <= sent else { return nil }
        return waiting.removeFirst().body
    }

    /// The next block, and whether its bytes are sent.
    mutating func last() -> (body: Notice, isSent: Bool)? {
        guard let first = waiting.first else { return nil }
        return (waiting.removeFirst().body, first.end <= sent)
    }
}
