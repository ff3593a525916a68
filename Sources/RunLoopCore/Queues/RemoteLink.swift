internal import Synchronization

/// What an item and its remotes share: which item it is, where its loop takes mail, and whether it has been stopped.
final class RemoteLink<Item: AnyObject, Loop: AnyObject>: Sendable {
    private let invalidated = Atomic(false)
    private let mailbox: Locked<Mailbox<Loop>?>
    // Set once, here, and read only on the thread of the item's loop, when the loop carries out a request.
    nonisolated(unsafe) weak let item: Item?

    init(_ item: Item, _ mailbox: Mailbox<Loop>?) {
        self.item = item
        self.mailbox = Locked(mailbox)
    }

    /// Whether the item has been stopped, here or on its own thread.
    var isInvalidated: Bool { invalidated.load(ordering: .acquiring) }

    /// - Returns: whether it had been stopped before.
    @discardableResult
    func markInvalidated() -> Bool {
        invalidated.exchange(true, ordering: .acquiringAndReleasing)
    }

    func loopChanged(to mailbox: Mailbox<Loop>?) {
        self.mailbox.withLock { $0 = mailbox }
    }

    /// Has the item's loop carry out a request on its thread, in whatever mode it runs; none does while the item is in
    /// no loop.
    func ask(_ request: @escaping @Sendable (Item) -> Void) {
        _ = mailbox.withLock { $0 }?.post(.urgent { [self] _ in item.map(request) })
    }
}
