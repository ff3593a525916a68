import RunLoopKit

/// All changes in a file, one after another, so that they can be made again at the next start.
///
/// Each loop writes the changes of a pass as one frame, before the replies that tell of them; the disk's thread syncs. When
/// the file is twice as long as it has to be, it is written anew from the keys in the store.
final class AppendLog {
    /// When a change is safe from a loss of power. From the end of the process it is safe before the client has its reply.
    enum Sync: String, CaseIterable {
        /// Before the client has its reply.
        case always
        /// Within a second.
        case everysec
        /// When the system likes.
        case no
    }

    struct Settings {
        var sync = Sync.everysec
        /// The file is not written anew as long as it is shorter than this.
        var rewriteSize = 64 * 1024 * 1024
    }

    let path: String
    /// Where changes come in.
    let queue: ChangeQueue
    /// Called when more has become safe, though no loop has just written it.
    var safeHandler: () -> Void = {}
    /// Called with what keeps changes from being written, and with `nil` when they are written again.
    var errorHandler: (DiskError?) -> Void = { _ in }
    /// Called when the disk has lost something that was written: nothing can mend that but a new start.
    var lossHandler: (DiskError) -> Void = { _ in }
    /// Called when the file has been written anew, or when that has failed.
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

    /// - Throws: if another process has the file, by whatever path, or if there can be none.
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

    /// Makes the changes that are in the file again; more come behind them.
    ///
    /// - Returns: how many bytes at the end were broken off and have been cut; `nil` if the file is empty.
    func load() throws(DiskError) -> Int? {
        let file = queue.file
        guard let cut = try file.load(.log, store.restore) else { return nil }
        store.endRestoring()
        queue.use(file)
        // Not by its length, because most of the file may be of the past.
        setLimit(twice: store.recordSize)
        look()
        return cut
    }

    /// Begins a file with what the store holds.
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

    /// Syncs, or tries again what has failed, at that time.
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

    /// Writes everything, whatever has failed before.
    ///
    /// - Returns: `false` if somebody else writes: then it tries again afterwards.
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

    /// Writes the file anew, as short as it can be, while changes go to the old one too.
    ///
    /// Changes that are noted before the new file is installed and written afterwards are in it twice. Making the same changes
    /// again in the same order changes nothing.
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

    /// Keeps all loops from writing, so that nothing is written to the old file alone.
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
        // A rewrite that has failed is tried again then, too.
        setLimit(twice: queue.length)
        rewriteHandler(outcome)
    }

    // MARK: The end

    /// Has everything on the disk, and then calls the completion. Note no change after that.
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
