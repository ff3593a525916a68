extension RunLoop {
    /// What any thread may ask of an item that belongs to the thread of its loop: a ``Timer``, a ``DisplayLink``, an
    /// ``Observer`` or a source.
    ///
    /// Apple's documentation warns against invalidating a timer from another thread, and here that does not compile.
    /// This handle is the safe way. It does not keep its item. `Sendable`.
    public struct ItemRemote<Subject: Item>: Sendable {
        let link: RemoteLink<Item, RunLoop>

        init(_ link: RemoteLink<Item, RunLoop>) {
            self.link = link
        }

        /// Stops the item for good: no call of its handler begins once this has returned.
        ///
        /// A call that is under way goes on. If there is one on another thread, this waits until it has certainly begun,
        /// but not until it ends, so the handler may itself wait for the calling thread. That takes microseconds, and up
        /// to about a millisecond while the handler computes. After about a second it gives up, which happens only if
        /// the item's thread is given no processor all the while. On the item's own thread this never waits.
        ///
        /// The item's loop is woken, and lets go of the handler and the target on its own thread soon after, in whatever
        /// mode it runs. An item that is in no loop is let go of by its owner. Harmless when repeated. Any thread.
        public func invalidate() {
            if link.markInvalidated() { link.ask { $0.invalidate() } }
            link.waitForBegin()
        }

        /// Whether the item has been stopped, here or on its own thread. Any thread.
        public var isInvalidated: Bool { link.isInvalidated }
    }
}
