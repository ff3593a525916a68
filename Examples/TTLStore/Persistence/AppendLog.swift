import RunLoopKit

/// All changes in a file, one after another, so that they can be made again at the next start.
///
/// The changes of a pass are one frame. While the disk's thread writes a frame, and waits for the disk if it has to, the
/// next one comes together. When the file has become long, it is written anew from what the store holds.
final class AppendLog {
    /// When a change is safe from a loss of power. From the end of the process it is safe as soon as it is written.
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
    /// Called when everything up to this position is safe.
    var safeHandler: (_ position: Int) -> Void = { _ in }
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
    private let lock: FileLock
    private let target = Target()

    /// The file, for the disk's thread alone once that runs.
    private final class Target: @unchecked Sendable {
        var file: FrameFile?
    }

    // The frame that is being written, or that could not be.
    private var frame: [UInt8] = []
    private var isBusy = false
    private var hasFailed = false
    private var timer: Timer?
    private var rewrite: Rewrite?
    private var nextRewrite = 0
    private var closing: ((DiskError?) -> Void)?

    init(_ path: String, _ settings: Settings, _ store: Store, _ disk: DiskThread, on loop: RunLoop) throws(DiskError) {
        self.path = path
        self.settings = settings
        self.store = store
        self.disk = disk
        self.loop = loop
        lock = try FileLock(for: path)
        let own = LoopBound(Own(), loop: loop)
        queue = ChangeQueue(settings.sync) { own.remote.perform(inModes: .common) { _ in own.value.log?.flush() } }
        own.value.log = self
    }

    private struct Own {
        weak var log: AppendLog?
    }

    // MARK: The start

    /// Makes the changes that are in the file again, and opens it for more.
    ///
    /// - Returns: how many bytes at the end were broken off and have been cut; `nil` if there is no file.
    func load() throws(DiskError) -> Int? {
        let found = try DiskError.withContents(of: path) { bytes throws(DiskError) in
            do throws(Frame.Broken) {
                return (extent: try Frame.read(bytes, .log, store.restore), length: bytes.count)
            } catch {
                throw DiskError(broken: path, .log, at: error.offset)
            }
        }
        guard let (extent, length) = found else { return nil }
        store.endRestoring()
        target.file = try FrameFile(appendingTo: path, extent)
        grown(to: extent.end)
        return length - extent.end
    }

    /// Begins a file with what the store holds.
    func create() throws(DiskError) {
        let file = try FrameFile(replacing: path, .log)
        try Dump.write(store.table, to: file)
        try file.install()
        target.file = file
        grown(to: file.length)
    }

    private func grown(to length: Int) {
        queue.fileHasGrown(to: length)
        nextRewrite = max(settings.rewriteSize, 2 * length)
    }

    // MARK: Changes

    /// Hands the changes to the disk's thread, unless it has some already.
    private func flush(syncs: Bool = false) {
        guard !isBusy else { return }
        if !hasFailed, let next = queue.takeFrame() { frame = next }
        let syncs = syncs || settings.sync == .always
        guard !frame.isEmpty || (syncs && queue.writtenSince != nil) else { return ended() }
        isBusy = true
        disk.perform { [target, frame] () throws(DiskError) in
            let file = target.file!
            if !frame.isEmpty { try file.append(frame) }
            if syncs { try file.sync() }
            return file.length
        } then: { [weak self] outcome in
            self?.written(outcome, syncs)
        }
    }

    private func written(_ outcome: DiskThread.Outcome, _ syncs: Bool) {
        isBusy = false
        switch outcome {
        case .success(let length):
            queue.fileHasGrown(to: length)
            frame = []
            if hasFailed { errorHandler(nil) }
            hasFailed = false
            if syncs || settings.sync == .no { safeHandler(queue.framesAreSafe()) }
            goOn(hasChanges: queue.frameIsWritten())
        case .failure(let error):
            if closing != nil { ended(error) }
            guard !error.isLoss else { return lossHandler(error) }
            if !hasFailed { errorHandler(error) }
            hasFailed = true
            queue.frameHasFailed()
            schedule(at: loop.now + .seconds(1))
        }
    }

    private func goOn(hasChanges: Bool) {
        if hasChanges || closing != nil {
            flush(syncs: closing != nil || isSyncDue)
        } else if settings.sync == .everysec, let date = queue.writtenSince {
            schedule(at: date + .milliseconds(500))
        }
        if queue.length > nextRewrite { writeAnew() }
    }

    private var isSyncDue: Bool {
        settings.sync == .everysec && queue.writtenSince.map { $0 + .milliseconds(500) <= loop.now } ?? false
    }

    /// Syncs, or tries again what has failed, at that time.
    private func schedule(at date: RunLoop.Instant) {
        guard timer?.isValid != true else { return }
        let timer = Timer(fire: date, interval: .zero, repeats: false) { [weak self] _ in
            self?.flush(syncs: self?.settings.sync == .everysec)
        }
        timer.name = "log"
        loop.add(timer, forMode: .common)
        self.timer = timer
    }

    // MARK: A new file

    /// Writes the file anew, as short as it can be, while changes go to the old one too.
    ///
    /// What is noted between the last piece and the change of files may be in the new file twice. Making the same changes
    /// again in the same order changes nothing.
    func writeAnew() {
        guard rewrite == nil, !hasFailed, closing == nil else { return }
        let rewrite = Rewrite(path, .log, store.table, disk, installed: { [target] in target.file = $0 }) {
            [weak self] outcome in
            guard let self else { return }
            queue.tell(nil)
            self.rewrite = nil
            if case .success(let length) = outcome { grown(to: length) } else { grown(to: queue.length) }
            rewriteHandler(outcome)
        }
        self.rewrite = rewrite
        queue.tell(rewrite.dump)
        rewrite.begin()
    }

    // MARK: The end

    /// Has everything on the disk, and then calls the completion. Note no change after that.
    func close(then completion: @escaping (DiskError?) -> Void) {
        closing = completion
        timer?.invalidate()
        flush(syncs: true)
    }

    private func ended(_ error: DiskError? = nil) {
        let completion = closing
        closing = nil
        completion?(error)
    }
}
