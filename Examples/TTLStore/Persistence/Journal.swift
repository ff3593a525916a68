import RunLoopKit

/// Where the stores of all loops note what they change. Any thread.
struct Journal: Sendable {
    /// Tells a snapshot that is being written.
    let note: (@Sendable (Store.Change) -> Void)?
    let queue: ChangeQueue?

    /// Notes each change of a store from now on. On the thread of the store's loop.
    func follow(_ store: Store, on loop: RunLoop) {
        guard note != nil || queue != nil else { return }
        store.changeHandler = { [self, unowned loop] change in
            note?(change)
            queue?.note(change, now: loop.now)
        }
    }

    /// What INFO says of it.
    var information: Commands.Information {
        (
            "Persistence",
            [("loading", "0"), ("aof_enabled", queue == nil ? "0" : "1")]
                + (queue.map { [("aof_current_size", "\($0.length)")] } ?? [])
        )
    }
}
