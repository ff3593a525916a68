import RunLoopKit

/// Changes from all loops on their way to the log. Any thread.
///
/// The changes of a pass are a frame, which is written before its replies are sent. Frames are numbered: positions in
/// the log are such numbers.
final class ChangeQueue: Sendable {
    private struct State {
        var changes: [UInt8] = []
        /// An empty array, with room for the changes of a pass.
        var spare: [UInt8] = []
        /// The number of the frame that the changes will form.
        var position = 1
        /// The last frame in the file, and the last one on the disk.
        var written = 0
        var synced = 0
        /// The time of the first frame that waits for a sync, and of the first frame in the present sync.
        var writtenSince: RunLoop.Instant?
        var syncingSince: RunLoop.Instant?
        /// The reason why changes cannot be written at present.
        var failure: DiskError?

        var file: FrameFile?
        var length = 0
        /// The length beyond which the file is to be rewritten.
        var limit = Int.max
        /// `true` while a loop writes, or writing is paused.
        var isTaken = false
        /// The blocks to call afterwards.
        var waiting: [@Sendable () -> Void] = []
        /// Called when the present write has ended, which pauses writing.
        var pausing: (@Sendable () -> Void)?
        var dump: Dump?
        /// `true` once the log has been notified of news.
        var hasTold = false

        /// Returns the position up to which the log is as safe as `sync` requires before replies are sent.
        func safePosition(_ sync: AppendLog.Sync, now: @autoclosure () -> RunLoop.Instant) -> Int {
            switch sync {
            case .always: return synced
            case .everysec:
                guard let since = syncingSince ?? writtenSince else { return written }
                return since + .seconds(1) < now() ? synced : written
            case .no: return written
            }
        }
    }

    private let sync: AppendLog.Sync
    private let state = Shared(State())
    /// Called when the log should look at the ``status()``. Any thread.
    private let tell: @Sendable () -> Void

    init(_ sync: AppendLog.Sync, tell: @escaping @Sendable () -> Void) {
        self.sync = sync
        self.tell = tell
    }

    // MARK: The stores

    /// Notes a change, whose key is locked.
    func note(_ change: Store.Change) {
        state.withLock { state in
            state.dump?.note(change)
            Record.append(change, to: &state.changes)
        }
    }

    /// Returns the position up to which the log must be safe before replies are sent that depend on changes that may be
    /// lost; `nil` if it is safe enough.
    ///
    /// - Parameter hasChanged: `true` if the replies are to changes.
    func unsafePosition(hasChanged: Bool, now: @autoclosure () -> RunLoop.Instant) -> Int? {
        state.withLock { state in
            let last = state.changes.isEmpty ? state.position - 1 : state.position
            guard last > state.safePosition(sync, now: now()) else { return nil }
            // The reply to a change that cannot be written waits. Other clients may read meanwhile, and learn why they
            // may not change anything.
            return state.failure == nil || hasChanged ? last : nil
        }
    }

    /// Returns the position up to which the log is as safe as required before replies are sent.
    func safePosition(now: @autoclosure () -> RunLoop.Instant) -> Int {
        state.withLock { $0.safePosition(sync, now: now()) }
    }

    var file: FrameFile { state.withLock { $0.file! } }
    var length: Int { state.withLock { $0.length } }

    // MARK: Writing

    /// Writes the changes noted so far. Does nothing if there are none, or, if this is no retry, if the last write
    /// failed.
    ///
    /// - Parameter again: called, on any thread, once the file is free.
    /// - Returns: `false` if the file is not free.
    func write(
        isRetry: Bool = false, now: @autoclosure () -> RunLoop.Instant, again: @escaping @Sendable () -> Void
    ) -> Bool {
        var frame: [UInt8] = []
        var file: FrameFile?
        let isFree = state.withLock { state in
            guard !state.isTaken else {
                // Even if there is nothing left to write: the present writer may have the caller's changes.
                state.waiting.append(again)
                return false
            }
            guard !state.changes.isEmpty, isRetry || state.failure == nil else { return true }
            state.isTaken = true
            state.position += 1
            (frame, state.changes, state.spare) = (state.changes, state.spare, [])
            file = state.file
            return true
        }
        guard let file else { return isFree }
        var failure: DiskError?
        do throws(DiskError) { try file.append(frame) } catch { failure = error }
        let (next, hasNews) = state.withLock { state in
            let hasNews = end(&frame, failure, file.length, now(), &state)
            return (giveBack(&state), hasNews)
        }
        for action in next { action() }
        if hasNews { tell() }
        return true
    }

    /// - Returns: `true` if the log has to be notified.
    private func end(
        _ frame: inout [UInt8], _ failure: DiskError?, _ length: Int, _ now: RunLoop.Instant, _ state: inout State
    ) -> Bool {
        var hasNews = failure != nil || state.failure != nil || length > state.limit
        (state.failure, state.length) = (failure, length)
        if failure == nil {
            state.written = state.position - 1
            if state.writtenSince == nil {
                state.writtenSince = now
                hasNews = hasNews || sync != .no
            }
            frame.removeAll(keepingCapacity: frame.capacity <= 1 << 20)
            state.spare = frame
        } else {
            // The next frame contains them, under a later number.
            state.changes = frame + state.changes
        }
        guard hasNews, !state.hasTold else { return false }
        state.hasTold = true
        return true
    }

    /// Frees the file, if writing is not to be paused.
    ///
    /// - Returns: the blocks to call.
    private func giveBack(_ state: inout State) -> [@Sendable () -> Void] {
        if let pausing = state.pausing {
            state.pausing = nil
            return [pausing]
        }
        state.isTaken = false
        defer { state.waiting = [] }
        return state.waiting
    }

    /// Pauses writing until ``resume()``.
    ///
    /// - Parameter ready: called when no loop writes: at once, or later and on any thread.
    func pause(_ ready: @escaping @Sendable () -> Void) {
        let isFree = state.withLock { state in
            guard state.isTaken else {
                state.isTaken = true
                return true
            }
            state.pausing = ready
            return false
        }
        if isFree { ready() }
    }

    func resume() {
        for action in state.withLock({ giveBack(&$0) }) { action() }
    }

    // MARK: The log

    struct Status {
        let failure: DiskError?
        /// The time of the first frame that waits for a sync.
        let writtenSince: RunLoop.Instant?
        let isTooLong: Bool
    }

    /// Returns the present state. Later news is a reason for another call of ``tell``.
    func status() -> Status {
        state.withLock { state in
            state.hasTold = false
            return Status(
                failure: state.failure, writtenSince: state.writtenSince, isTooLong: state.length > state.limit)
        }
    }

    /// Uses this file for writing from now on. No thread may write during the call.
    func use(_ file: FrameFile) {
        state.withLock { ($0.file, $0.length) = (file, file.length) }
    }

    /// Sets the length beyond which the file is to be rewritten.
    func setLimit(_ limit: Int) {
        state.withLock { $0.limit = limit }
    }

    /// - Returns: the file to sync, and the position up to which it will then be on the disk.
    func beginSync() -> (file: FrameFile, position: Int) {
        state.withLock { state in
            (state.syncingSince, state.writtenSince) = (state.writtenSince, nil)
            return (state.file!, state.written)
        }
    }

    func endSync(upTo position: Int) {
        state.withLock { ($0.syncingSince, $0.synced) = (nil, position) }
    }

    /// Passes changes to a dump from now on; `nil` for none.
    func tell(_ dump: Dump?) {
        state.withLock { $0.dump = dump }
    }
}
