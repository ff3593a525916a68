/// State that an item and its remotes share: the item, the mailbox of its loop, and whether it has been stopped.
final class RemoteLink<Item: AnyObject, Loop: AnyObject>: Sendable {
    /// Closed when the item has been stopped, here or on its own thread.
    private let gate = CallGate()
    private let mailbox: Locked<Mailbox<Loop>?>
    // Set once, here, and read only on the thread of the item's loop, when the loop carries out a request.
    nonisolated(unsafe) weak let item: Item?

    init(_ item: Item, _ mailbox: Mailbox<Loop>?) {
        self.item = item
        self.mailbox = Locked(mailbox)
    }

    var isInvalidated: Bool { gate.isClosed }

    /// - Returns: whether it was valid.
    @discardableResult
    func markInvalidated() -> Bool { gate.close() }

    /// Waits until a call that another thread is just beginning has begun.
    func waitForBegin() { gate.waitForBegin() }

    /// Calls the item's handler, unless it has been stopped.
    ///
    /// - Parameter thread: the calling thread.
    /// - Returns: whether it was called.
    @inline(__always)
    func call(on thread: UInt32, _ handler: () -> Void) -> Bool { gate.pass(on: thread, handler) }

    @inline(never)
    func loopChanged(to mailbox: Mailbox<Loop>?) {
        self.mailbox.withLock { $0 = mailbox }
    }

    /// Has the item's loop carry out a request on its thread, in any mode. Does nothing while the item is in no loop.
    func ask(_ request: @escaping @Sendable (Item) -> Void) {
        _ = mailbox.withLock { $0 }?.post(.urgent { [self] _ in item.map(request) })
    }
}
