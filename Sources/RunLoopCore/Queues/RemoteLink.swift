/// State that an item and its remotes share: the item, the mailbox of its loop, and whether it has been stopped.
final class RemoteLink<Item: AnyObject, Loop: AnyObject>: Sendable {
    /// Passed by calls of the item's handler; closed when the item has been stopped, here or on its own thread.
    let gate = CallGate()
    private let mailbox: Locked<Mailbox<Loop>?>
    // Set once, here, and read only on the thread of the item's loop, when the loop carries out a request.
    nonisolated(unsafe) weak let item: Item?

    init(_ item: Item, _ mailbox: Mailbox<Loop>?) {
        self.item = item
        self.mailbox = Locked(mailbox)
    }

    // Asked here, because behind `extras?.link?` a look at the gate checks the access to `extras`: 100 instructions.
    var isInvalidated: Bool { gate.isClosed }

    @inline(never)
    func loopChanged(to mailbox: Mailbox<Loop>?) {
        self.mailbox.withLock { $0 = mailbox }
    }

    /// Has the item's loop carry out a request on its thread, in any mode. Does nothing while the item is in no loop.
    func ask(_ request: @escaping @Sendable (Item) -> Void) {
        _ = mailbox.withLock { $0 }?.post(.urgent { [self] _ in item.map(request) })
    }
}
