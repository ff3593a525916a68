internal import RunLoopKit

extension Connection {
    /// Calls a block when the system has all bytes that were written so far, for example to count what a peer gets, or to
    /// give back the memory of a large answer.
    ///
    /// - Parameter body: called once, on the loop's thread, in its modes and never before this call has returned: with
    ///   `true` when the system has the bytes, with `false` if the connection is closed or moved before, after its close
    ///   handler. The peer may not have them yet. Released without a call if the loop ends first.
    public func whenSent(_ body: @escaping (_ connection: Connection, _ isSent: Bool) -> Void) {
        if notices == nil { notices = SentNotices() }
        notices!.waiting.append((isOpen ? notices!.sent + pendingOutput : .max, body))
        guard pendingOutput == 0 else { return }
        loop.perform(inModes: modes) { [self] in
            guard isOpen else { return endNotices() }
            update { notify(sent: 0) }
        }
    }

    /// Waits until the system has all bytes that were written so far; the peer may not have them yet. On the loop's thread.
    ///
    /// - Throws: ``ClosedError`` if the connection is closed before; `CancellationError`, after which the bytes are still
    ///   sent.
    public nonisolated(nonsending) func sent() async throws {
        if loop.hasGone("a connection") { throw await loop.remote.endErrorAfterTurn() }
        let wait = NamedWait(loop.remote, "waits until a connection has sent its output")
        var isSent = false
        whenSent { _, outcome in
            isSent = outcome
            wait.end()
        }
        try await wait.wait()
        guard isSent else { throw closeError }
    }

    /// So many bytes were sent: calls the blocks for them.
    func notify(sent count: Int) {
        notices?.sent += count
        while let (body, _) = notices?.next() { call { body($0, true) } }
        if notices?.waiting.isEmpty == true { notices = nil }
    }

    /// The connection is closed: calls the blocks that are left.
    func endNotices() {
        while let (body, isSent) = notices?.next(atEnd: true) { body(self, isSent) }
        notices = nil
    }
}

/// The blocks that wait until output is sent.
struct SentNotices {
    typealias Notice = (Connection, Bool) -> Void

    /// Each with the value of ``sent`` that it waits for; `.max` if its bytes will not be sent.
    var waiting: [(end: Int, body: Notice)] = []
    /// The number of bytes that were sent since the first notice.
    var sent = 0

    /// The next block whose bytes are sent or, at the end, of all; and whether they are sent.
    mutating func next(atEnd: Bool = false) -> (body: Notice, isSent: Bool)? {
        guard let first = waiting.first, atEnd || first.end <= sent else { return nil }
        return (waiting.removeFirst().body, first.end <= sent)
    }
}
