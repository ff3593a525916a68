extension RunLoop {
    /// A handle by which any thread may send requests to an item that belongs to its loop's thread: a ``Timer``, a
    /// ``DisplayLink``, an ``Observer`` or a source.
    ///
    /// Apple's documentation warns against invalidating a timer from another thread, and here that does not compile.
    /// This handle is the safe way. A remote does not keep its item. `Sendable`.
    public struct ItemRemote<Subject: Item>: Sendable {
        let link: RemoteLink<Item, RunLoop>

        /// Stops the item for good: once this has returned, no call of its handler begins.
        ///
        /// A call under way is not interrupted. If it is on another thread, this method waits until the handler has
        /// certainly begun, but not until it ends, so the handler may itself wait for the calling thread. That takes
        /// microseconds, or up to about a millisecond if the handler computes. The wait ends after about a second,
        /// which happens only if the item's thread gets no processor all that time. On the item's own thread there is
        /// no wait.
        ///
        /// Wakes the item's loop, which releases the handler and the target on its own thread soon after, in any mode.
        /// If the item is in no loop, its owner releases them. Harmless when repeated. Any thread.
        public func invalidate() {
            if link.gate.close() { link.ask { $0.invalidate() } }
            link.gate.waitForBegin()
        }

        /// A Boolean value that indicates whether the item has been stopped, here or on its own thread. Any thread.
        public var isInvalidated: Bool { link.isInvalidated }
    }
}
