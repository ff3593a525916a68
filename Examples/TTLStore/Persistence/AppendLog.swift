import RunLoopKit

/// A file of all changes, one after another, so that they can be made again at the next start.
///
/// Each loop writes the changes of a pass as one frame, before their replies are sent; the disk's thread syncs. When
/// the file is twice as long as necessary, it is rewritten from the keys in the store.
final class AppendLog {
    /// The time when a change is safe from a loss of power. If only the process ends, a change is always safe before
    /// the client has its reply.
    enum Sync: String, CaseIterable {
        /// Before the client has its reply.
        case always
        /// Within a second.
        case everysec
        /// When the kernel writes the change back.
        case no
    }

    struct Settings {
        var sync = Sync.everysec
        /// The length below which the file is not rewritten.
        var rewriteSize = 64 * 1024 * 1024
    }

    let path: String
    /// The queue that collects changes.
    let queue: ChangeQueue
    /// Called when more changes have become safe, although no loop has just written.
    var safeHandler: () -> Void = {}
    /// Called with the error that keeps changes from being written, and with `nil` when writing works again.
    var errorHandler: (DiskError?) -> Void = { _ in }
    /// Called when the disk has lost written data, which only a new start can mend.
    var lossHandler: (DiskError) -> Void = { _ in }
    /// Called when the file has been rewritten, or when the rewrite has failed.
    var rewriteHandler: (DiskThread.Outcome) -> Void = { _ in }

    private let settings: Settings
    private let store: Store
    private let disk: DiskThread
    private let loop: RunLoop
    private let own: LoopBound<Own>
    private var hasFailed = false
    private var isSyncing = false
    private var timer: Timer?
    private var rewrite: Rewrite?
    /// The end of the rewrite, which waits for the present writer.
    private var afterPause: (() -> Void)?
    private var isPaused = false
    private var closing: ((DiskError?) -> Void)?

    /// - Throws: `DiskError` if another process has locked the file, by any path, or if it cannot be created.
    init(_ path: String, _ settings: Settings, _ store: Store, _ disk: DiskThread, on loop: RunLoop) throws(DiskError) {
        self.path = path
        self.settings = settings
        self.store = store
        self.disk = disk
        self.loop = loop
        let own = LoopBound(Own(), loop: loop)
        self.own = own
        queue = ChangeQueue(settings.sync) { own.remote.perform(inModes: .common) { _ in own.value.log?.look() } }
        queue.use(try FrameFile(at: path))
        own.value.log = self
    }

    private struct Own {
        weak var log: AppendLog?
    }

    // MARK: The start

    /// Makes the changes in the file again; further changes are appended.
    ///
    /// - Returns: the length of the broken end that was cut off, in bytes; `nil` if the file is empty.
    func load() throws(DiskError) -> Int? {
        let file = queue.file
        guard let cut = try file.load(.log, store.restore) else { return nil }
        store.endRestoring()
        queue.use(file)
        // Not by its length, because most of the file may be obsolete.
        setLimit(twice: store.recordSize)
        look()
        return cut
    }

    /// Begins a file with the contents of the store.
    func create() throws(DiskError) {
        let file = try FrameFile(replacing: path, .log)
        try Dump.write(store.table, to: file)
        try file.install()
        queue.use(file)
        setLimit(twice: file.length)
    }

    private func setLimit(twice length: Int) {
        queue.setLimit(max(settings.rewriteSize, 2 * length))
    }

    // MARK: Changes

    /// Reacts to a write or its failure: syncs, tries again, or begins a new file.
    private func look() {
        let status = queue.status()
        if let failure = status.failure { return failed(failure) }
        if hasFailed {
            hasFailed = false
            errorHandler(nil)
            safeHandler()
        }
        guard closing == nil else { return finish() }
        if let since = status.writtenSince, !isSyncing, settings.sync != .no {
            let date = settings.sync == .always ? since : since + .milliseconds(500)
            if date <= loop.now { sync() } else { schedule(at: date) }
        }
        if status.isTooLong { writeAnew() }
    }

    private func failed(_ failure: DiskError) {
        if closing != nil { ended(failure) }
        guard !failure.isLoss else { return lossHandler(failure) }
        if !hasFailed { errorHandler(failure) }
        hasFailed = true
        schedule(at: loop.now + .seconds(1))
    }

    /// Schedules a sync, or another attempt after a failure, at `date`.
    private func schedule(at date: RunLoop.Instant) {
        guard timer?.isValid != true else { return }
        let timer = Timer(fire: date, interval: .zero, repeats: false) { [weak self] _ in
            guard let self else { return }
            if hasFailed { retry() } else { look() }
        }
        timer.name = "log"
        loop.add(timer, forMode: .common)
        self.timer = timer
    }

    private func retry() {
        if write() { look() }
    }

    /// Writes all changes, even after earlier failures.
    ///
    /// - Returns: `false` if another thread is writing; the call is then repeated afterwards.
    private func write() -> Bool {
        queue.write(isRetry: true, now: loop.now) { [own] in
            own.remote.perform(inModes: .common) { _ in own.value.log?.retry() }
        }
    }

    private func sync() {
        isSyncing = true
        let (file, position) = queue.beginSync()
        disk.perform { () throws(DiskError) in
            try file.sync()
            return position
        } then: { [weak self] outcome in
            self?.synced(outcome)
        }
    }

    private func synced(_ outcome: DiskThread.Outcome) {
        isSyncing = false
        switch outcome {
        case .success(let position):
            queue.endSync(upTo: position)
            safeHandler()
            look()
        case .failure(let error):
            if closing != nil { ended(error) }
            lossHandler(error)
        }
    }

    // MARK: A new file

    /// Rewrites the file, as short as it can be, while changes also go to the old one.
    ///
    /// Changes that are noted before the new file is installed, and written afterwards, are in the new file twice.
    /// Making the same changes again in the same order changes nothing.
    func writeAnew() {
        guard rewrite == nil, !hasFailed, closing == nil else { return }
        queue.setLimit(.max)
        let rewrite = Rewrite(
            path, .log, store.table, disk, settle: { [weak self] in self?.pause(then: $0) },
            installed: { [queue] in queue.use($0) }
        ) { [weak self] in self?.rewritten($0) }
        self.rewrite = rewrite
        queue.tell(rewrite.dump)
        rewrite.begin()
    }

    /// Pauses writing on all loops, so that no change goes to the old file alone.
    private func pause(then end: @escaping () -> Void) {
        afterPause = end
        queue.pause { [own] in own.remote.perform(inModes: .common) { _ in own.value.log?.paused() } }
    }

    private func paused() {
        isPaused = true
        afterPause?()
        afterPause = nil
    }

    private func rewritten(_ outcome: DiskThread.Outcome) {
        rewrite = nil
        queue.tell(nil)
        if isPaused { queue.resume() }
        isPaused = false
        // A failed rewrite is then tried again, too.
        setLimit(twice: queue.length)
        rewriteHandler(outcome)
    }

    // MARK: The end

    /// Writes everything to the disk, and then calls the completion. Note no change after that.
    func close(then completion: @escaping (DiskError?) -> Void) {
        closing = completion
        timer?.invalidate()
        finish()
    }

    private func finish() {
        guard !isSyncing, write() else { return }
        let status = queue.status()
        guard status.failure == nil, status.writtenSince != nil else { return ended(status.failure) }
        sync()
    }

    private func ended(_ error: DiskError? = nil) {
        let completion = closing
        closing = nil
        completion?(error)
    }
}
