import Glibc
import RunLoopKit
import RunLoopUnix

/// The store in a file, which is always complete.
final class Snapshot {
    let path: String
    private let store: Store
    private let disk: DiskThread
    private let lock: FileLock
    private var rewrite: Rewrite?
    /// The dump that receives each change, during a write.
    private let dump = Shared<Dump?>(nil)
    private var completions: [(DiskError?) -> Void] = []
    /// The completions of requests made during a write, which may lack the latest changes.
    private var waiting: [(DiskError?) -> Void] = []

    init(_ path: String, _ store: Store, _ disk: DiskThread) throws(DiskError) {
        self.path = path
        self.store = store
        self.disk = disk
        lock = try FileLock(for: path)
    }

    /// Loads the file into the store; does nothing if there is no file.
    func load() throws(DiskError) {
        let file: File
        do throws(SystemError) {
            file = try Disk.current.open(path, .reading)
        } catch {
            if error.errno == ENOENT { return }
            throw DiskError(error.operation, error.errno)
        }
        try DiskError.withContents(of: file) { bytes throws(DiskError) in
            _ = try Frame.read(bytes, .snapshot, of: path, store.restore)
        }
        store.endRestoring()
    }

    /// Notes a change, whose key is locked. Any thread.
    var note: @Sendable (Store.Change) -> Void {
        { [dump] change in dump.withLock { $0?.note(change) } }
    }

    /// Writes the whole store, with every change up to now, while the loop continues. If that fails, the old file is
    /// unchanged.
    func write(then completion: @escaping (DiskError?) -> Void) {
        guard rewrite == nil else { return waiting.append(completion) }
        completions = [completion]
        begin()
    }

    private func begin() {
        let rewrite = Rewrite(path, .snapshot, store.table, disk) { [weak self] in self?.end($0) }
        self.rewrite = rewrite
        dump.withLock { $0 = rewrite.dump }
        rewrite.begin()
    }

    private func end(_ outcome: DiskThread.Outcome) {
        rewrite = nil
        dump.withLock { $0 = nil }
        var error: DiskError?
        if case .failure(let reason) = outcome { error = reason }
        let ended = completions
        completions = waiting
        waiting = []
        if !completions.isEmpty { begin() }
        for completion in ended { completion(error) }
    }
}
