import RunLoopKit

/// Changes from all loops on their way to the log. Any thread.
///
/// The changes that come while the frame before them is written make the next frame. Frames are counted: positions in
/// the log are such numbers.
final class ChangeQueue: Sendable {
    private struct State {
        var changes: [UInt8] = []
        /// Since when there are changes.
        var changedSince: RunLoop.Instant?
        /// Since when something is on a frame, and not as safe as it is to be.
        var writtenSince: RunLoop.Instant?
        /// The frame that the changes will be.
        var position = 1
        /// Somebody will ask for the next frame, or takes none for now.
        var isAwaited = false
        var hasFailed = false
        /// How many bytes the file has.
        var length = 0
        var dump: Dump?
    }

    private let sync: AppendLog.Sync
    private let state = Shared(State())
    /// Has the next frame written. Called on the thread of a change.
    private let flush: @Sendable () -> Void

    init(_ sync: AppendLog.Sync, flush: @escaping @Sendable () -> Void) {
        self.sync = sync
        self.flush = flush
    }

    // MARK: The stores

    /// Notes a change, whose key is locked.
    func note(_ change: Store.Change, now: @autoclosure () -> RunLoop.Instant) {
        let isFirst = state.withLock { state in
            state.dump?.note(change)
            Record.append(change, to: &state.changes)
            guard state.changedSince == nil else { return false }
            state.changedSince = now()
            defer { state.isAwaited = true }
            return !state.isAwaited
        }
        if isFirst { flush() }
    }

    /// The position up to which everything must be safe before replies may go, since they tell of what may be lost
    /// otherwise; `nil` if it is safe enough.
    ///
    /// - Parameter hasChanged: whether the replies are to changes.
    func unsafePosition(hasChanged: Bool, now: @autoclosure () -> RunLoop.Instant) -> Int? {
        state.withLock { state in
            guard state.changedSince != nil || state.writtenSince != nil else { return nil }
            let position = state.changedSince == nil ? state.position - 1 : state.position
            // Whoever changes what cannot be written waits. Others may read meanwhile, and be told why they may not change
            // anything.
            guard !state.hasFailed else { return hasChanged ? position : nil }
            switch sync {
            case .always: return position
            case .everysec:
                let since = min(state.writtenSince ?? .distantFuture, state.changedSince ?? .distantFuture)
                return since + .seconds(1) < now() ? position : nil
            // What waits for the disk is bounded all the same.
            case .no: return state.changes.count > 64 * 1024 * 1024 ? position : nil
            }
        }
    }

    var length: Int { state.withLock { $0.length } }

    // MARK: The log

    /// The changes that have come together, as a frame. If there are none, somebody asks when there are.
    func takeFrame() -> [UInt8]? {
        state.withLock { state in
            guard let since = state.changedSince else {
                state.isAwaited = false
                return nil
            }
            defer { state.changes = [] }
            state.isAwaited = true
            state.writtenSince = state.writtenSince ?? since
            state.changedSince = nil
            state.position += 1
            return state.changes
        }
    }

    func fileHasGrown(to length: Int) {
        state.withLock { $0.length = length }
    }

    /// From now on somebody asks for a frame when there are changes again.
    ///
    /// - Returns: whether there are some already.
    func frameIsWritten() -> Bool {
        state.withLock { state in
            state.hasFailed = false
            state.isAwaited = state.changedSince != nil
            return state.isAwaited
        }
    }

    /// Nothing can be written for now, and nobody asks for it.
    func frameHasFailed() {
        state.withLock { $0.hasFailed = true }
    }

    /// Everything that is on a frame is as safe as it is to be.
    ///
    /// - Returns: the position of the last one.
    func framesAreSafe() -> Int {
        state.withLock { state in
            state.writtenSince = nil
            return state.position - 1
        }
    }

    /// Since when something is on a frame, and not as safe as it is to be.
    var writtenSince: RunLoop.Instant? { state.withLock { $0.writtenSince } }

    /// Tells a dump of changes from now on; `nil` for none.
    func tell(_ dump: Dump?) {
        state.withLock { $0.dump = dump }
    }
}
