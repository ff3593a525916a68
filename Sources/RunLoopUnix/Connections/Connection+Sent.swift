@_spi(Ports) internal import RunLoopKit

extension Connection {
    /// Calls a block when the system has accepted all bytes written so far, for example to count sent bytes or to free
    /// the memory of a large answer.
    ///
    /// - Parameter body: called once, on the loop's thread, in its modes and never before this call has returned: with
    ///   `true` when the system has the bytes, which the peer may not have yet, or with `false`, after the close
    ///   handler, if the connection is closed or moved first. Released without a call if the loop ends first.
    public func whenSent(_ body: @escaping (_ connection: Connection, _ isSent: Bool) -> Void) {
        if notices == nil { notices = SentNotices() }
        notices!.waiting.append((isOpen ? notices!.sent + pendingOutput : .max, body))
        guard pendingOutput == 0 else { return }
        loop.perform(inModes: modes) { [self] in
            guard isOpen else { return endNotices() }
            update { notify(sent: 0) }
        }
    }

    /// Waits until the system has accepted all bytes written so far, which the peer may not have yet. Await it on the
    /// loop's thread.
    ///
    /// - Throws: ``ClosedError`` if the connection is closed first; `CancellationError`, after which the bytes are
    ///   still sent.
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

    /// Notes that `count` bytes were sent, and calls the blocks that waited for them.
    func notify(sent count: Int) {
        assert(count >= 0, "output that was sent has come back")
        notices?.sent += count
        while let (body, _) = notices?.next() { call { body($0, true) } }
        if notices?.waiting.isEmpty == true { notices = nil }
    }

    /// Calls the remaining blocks of a closed connection.
    func endNotices() {
        while let (body, isSent) = notices?.next(atEnd: true) { body(self, isSent) }
        notices = nil
    }
}

/// The blocks that wait for output to be sent.
struct SentNotices {
    typealias Notice = (Connection, Bool) -> Void

    /// The waiting blocks, each with the value of ``sent`` that it waits for; `.max` if its bytes will not be sent.
    var waiting: [(end: Int, body: Notice)] = []
    /// The number of bytes sent since the first notice.
    var sent = 0

    /// Removes and returns the next block whose bytes have been sent or, at the end, any next block, with whether they
    /// have.
    mutating func next(atEnd: Bool = false) -> (body: Notice, isSent: Bool)? {
        guard let first = waiting.first, atEnd || first.end <= sent else { return nil }
        assert(waiting.count < 2 || waiting[1].end >= first.end, "a notice is before one of less output")
        return (waiting.removeFirst().body, first.end <= sent)
    }
}
