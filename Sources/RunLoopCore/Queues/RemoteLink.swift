/// The state that an item and its remotes share: the item, the mailbox of its loop, and whether it has been stopped.
final class RemoteLink<Item: AnyObject, Loop: AnyObject>: Sendable {
    /// The gate that calls of the item's handler pass; closed once the item has been stopped, on any thread.
    let gate = CallGate()
    private let mailbox: Locked<Mailbox<Loop>?>
    // Set once, here, and read only on the thread of the item's loop, when the loop carries out a request.
    nonisolated(unsafe) weak let item: Item?

    init(_ item: Item, _ mailbox: Mailbox<Loop>?) {
        self.item = item
        self.mailbox = Locked(mailbox)
    }

    // Read here, because behind `extras?.link?` a look at the gate checks the access to `extras`: 100 instructions.
    var isInvalidated: Bool { gate.isClosed }

    @inline(never)
    func loopChanged(to mailbox: Mailbox<Loop>?) {
        self.mailbox.withLock { $0 = mailbox }
    }

    /// Asks the item's loop to carry out a request on its thread, in any mode. Does nothing while the item is in no
    /// loop.
    func ask(_ request: @escaping @Sendable (Item) -> Void) {
        _ = mailbox.withLock { $0 }?.post(.urgent { [self] _ in item.map(request) })
    }
}
