import Logging
import RunLoopKit

/// The files of the store: a snapshot, a log, both or nothing.
final class Persistence {
    /// Called when written data has been lost.
    var lossHandler: (DiskError) -> Void = { _ in }
    /// `true` once ``close(then:)`` has completed.
    private(set) var isClosed = false

    private let store: Store
    private let log: Logger
    private let disk: DiskThread?
    private let snapshot: Snapshot?
    private let changes: AppendLog?
    private let sync: AppendLog.Sync

    init(_ options: TTLStore, _ store: Store, on loop: RunLoop, _ log: Logger) throws(DiskError) {
        self.store = store
        self.log = log
        sync = options.fsync
        guard options.snapshot != nil || options.log != nil else {
            (disk, snapshot, changes) = (nil, nil, nil)
            return
        }
        let disk = DiskThread(on: loop)
        self.disk = disk
        snapshot = if let path = options.snapshot { try Snapshot(path, store, disk) } else { nil }
        let settings = AppendLog.Settings(sync: options.fsync, rewriteSize: options.logRewriteSize.bytes)
        changes = if let path = options.log { try AppendLog(path, settings, store, disk, on: loop) } else { nil }
    }

    /// Loads the log or, if there is none yet, the snapshot.
    func load() throws(DiskError) {
        if let cut = try changes?.load() {
            if cut > 0 { log.warning("the last \(cut) bytes of the log were broken off, and are cut") }
        } else {
            try snapshot?.load()
            try changes?.create()
        }
        if store.count > 0 { log.info("\(store.count) keys loaded") }
    }

    /// The journal for the changes of the stores.
    var journal: Journal { Journal(note: snapshot?.note, queue: changes?.queue) }

    /// Connects the log to the servers: clients get the replies that wait for it, and learn of its errors.
    func connect(_ servers: Servers) {
        guard let changes else { return }
        let each = servers.each
        changes.safeHandler = { each { $0.release() } }
        changes.errorHandler = { [log] error in
            if let error { log.error("\(error); nothing can be changed until it can be written") }
            if error == nil { log.warning("changes can be written again") }
            let reason = error?.reason
            each { $0.commands.writeError = reason }
        }
        changes.lossHandler = { [unowned self] error in
            log.critical("\(error); written records may be lost")
            lossHandler(error)
        }
        changes.rewriteHandler = { [log] outcome in
            switch outcome {
            case .success(let length): log.info("the log is written anew, with \(length) bytes")
            case .failure(let error): log.error("\(error); the old log stays in use")
            }
        }
    }

    /// Writes a snapshot; without one, rewrites the log.
    ///
    /// - Parameter completion: called with `true` if the files are complete.
    func save(then completion: @escaping (Bool) -> Void) {
        guard let snapshot else {
            changes?.writeAnew()
            return completion(true)
        }
        snapshot.write { [log, store] error in
            if let error {
                log.error("\(error); the keys are kept in memory, and the old snapshot is as it was")
            } else {
                log.info("\(store.count) keys written to \(snapshot.path)")
            }
            completion(error == nil)
        }
    }

    /// Writes all changes to the disk. Clients may change nothing any more.
    func close(then completion: @escaping (Bool) -> Void) {
        var missing = 0
        var isSaved = true
        func end(_ success: Bool) {
            missing -= 1
            isSaved = isSaved && success
            guard missing == 0 else { return }
            disk?.close()
            isClosed = true
            completion(isSaved)
        }
        missing = (snapshot == nil ? 0 : 1) + (changes == nil ? 0 : 1) + 1
        if snapshot != nil { save(then: end) }
        changes?.close { [log] error in
            if let error { log.error("\(error); the last changes are lost") }
            end(error == nil)
        }
        end(true)
    }

    /// The persistence entries of CONFIG GET.
    var configuration: [String: String] {
        ["appendonly": changes == nil ? "no" : "yes", "appendfsync": sync.rawValue]
    }
}
