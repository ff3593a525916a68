import Logging
import RunLoopKit

/// What is kept in files: a snapshot, a log, both or nothing.
final class Persistence {
    /// Called with what keeps changes from being written, and with `nil` when they are written again.
    var errorHandler: (DiskError?) -> Void = { _ in }
    /// Called when something that was written has been lost.
    var lossHandler: (DiskError) -> Void = { _ in }
    /// Whether ``close(then:)`` has come to its end.
    private(set) var isClosed = false

    private let store: Store
    private let log: Logger
    private let disk: Disk?
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
        let disk = Disk(on: loop)
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

    /// From now on, each change is noted, and replies wait where they must.
    func connect(_ server: Server) {
        guard snapshot != nil || changes != nil else { return }
        store.changeHandler = { [unowned self] change in
            snapshot?.note(change)
            changes?.note(change)
        }
        guard let changes else { return }
        server.unsafePosition = { changes.unsafePosition }
        changes.safeHandler = { [unowned server] in server.release(upTo: $0) }
        changes.errorHandler = { [unowned self] error in
            if let error { log.error("\(error); nothing can be changed until it can be written") }
            if error == nil { log.warning("changes can be written again") }
            errorHandler(error)
        }
        changes.lossHandler = { [unowned self] error in
            log.critical("\(error); what was written may be lost")
            lossHandler(error)
        }
        changes.rewriteHandler = { [log] outcome in
            switch outcome {
            case .success(let length): log.info("the log is written anew, with \(length) bytes")
            case .failure(let error): log.error("\(error); the old log goes on")
            }
        }
    }

    /// Writes a snapshot; without one, the log anew.
    ///
    /// - Parameter completion: called with whether what is kept is as it should be.
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

    /// Has everything on the disk. Nothing may be changed any more by clients.
    func close(then completion: @escaping (Bool) -> Void) {
        var missing = 0
        var isSaved = true
        func end(_ success: Bool) {
            missing -= 1
            isSaved = isSaved && success
            guard missing == 0 else { return }
            store.changeHandler = nil
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

    // MARK: Answers

    var information: Commands.Information {
        (
            "Persistence",
            [("loading", "0"), ("aof_enabled", changes == nil ? "0" : "1")]
                + (changes.map { [("aof_current_size", "\($0.length)")] } ?? [])
        )
    }

    var configuration: [String: String] {
        ["appendonly": changes == nil ? "no" : "yes", "appendfsync": sync.rawValue]
    }
}
