import RunLoopKit

/// The destination of the changes of all stores. Any thread.
struct Journal: Sendable {
    /// Passes a change to a snapshot that is being written.
    let note: (@Sendable (Store.Change) -> Void)?
    let queue: ChangeQueue?

    /// Notes each change of a store from now on. Called on the thread of the store's loop.
    ///
    /// - Returns: the writer of the changes to the log, if any.
    func follow(_ store: Store, on loop: RunLoop) -> ChangeWriter? {
        let writer = queue.map { ChangeWriter($0, on: loop) }
        guard note != nil || writer != nil else { return nil }
        store.changeHandler = { [note] change in
            note?(change)
            writer?.note(change)
        }
        return writer
    }

    /// The journal's section of INFO.
    var information: Commands.Information {
        (
            "Persistence",
            [("loading", "0"), ("aof_enabled", queue == nil ? "0" : "1")]
                + (queue.map { [("aof_current_size", "\($0.length)")] } ?? [])
        )
    }
}
