import RunLoopKit

/// The store in a file, which is always a whole one.
final class Snapshot {
    let path: String
    private let store: Store
    private let disk: Disk
    private let lock: FileLock
    private var rewrite: Rewrite?
    private var completions: [(DiskError?) -> Void] = []
    /// Asked for while one was being written, which may lack the latest changes.
    private var waiting: [(DiskError?) -> Void] = []

    init(_ path: String, _ store: Store, _ disk: Disk) throws(DiskError) {
        self.path = path
        self.store = store
        self.disk = disk
        lock = try FileLock(for: path)
    }

    /// Loads the file into the store; without a file nothing.
    func load() throws(DiskError) {
        guard let file = try MappedFile(path) else { return }
        do throws(Frame.Broken) {
            _ = try Frame.read(file.bytes, .snapshot, store.restore)
        } catch {
            throw DiskError(broken: path, .snapshot, at: error.offset)
        }
        store.endRestoring()
    }

    /// Notes a change to the store.
    func note(_ change: Store.Change) {
        rewrite?.note(change)
    }

    /// Writes all of the store, with every change up to now, while the loop goes on. If that fails, the old file is as it
    /// was.
    func write(then completion: @escaping (DiskError?) -> Void) {
        guard rewrite == nil else { return waiting.append(completion) }
        completions = [completion]
        rewrite = Rewrite(path, .snapshot, store, disk) { [weak self] in self?.end($0) }
    }

    private func end(_ outcome: Disk.Outcome) {
        rewrite = nil
        var error: DiskError?
        if case .failure(let reason) = outcome { error = reason }
        let ended = completions
        completions = waiting
        waiting = []
        if !completions.isEmpty { rewrite = Rewrite(path, .snapshot, store, disk) { [weak self] in self?.end($0) } }
        for completion in ended { completion(error) }
    }
}
