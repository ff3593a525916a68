import FoundationEssentials
import Logging
import RunLoopKit
import RunLoopUnix

/// The file of jobs, which is read again on request, and when it changes. Used on the daemon's loop; work that waits
/// for the disk is done on another thread.
final class JobFile {
    /// The error in the file at the last reading; the jobs are then still the previous ones.
    private(set) var problem: String?
    /// Called with the table that the file contains.
    var tableHandler: (JobTable) -> Void = { _ in }

    private let path: String
    private let zone: TimeZone
    private let loop: RunLoop
    private let disk: RunLoop.Remote
    private let log: Logger
    private var watcher: FileWatcher?
    /// A call a moment after the file has changed.
    private var look: DelayedCall?

    /// The time that a change waits for others to follow.
    private static let pause = Duration.milliseconds(100)

    init(_ path: String, in zone: TimeZone, on loop: RunLoop, disk: RunLoop.Remote, _ log: Logger) {
        (self.path, self.zone, self.loop, self.disk, self.log) = (path, zone, loop, disk, log)
    }

    /// Reads the file for the first time. Blocks for the disk.
    func load() throws(JobTable.Unreadable) {
        take(try JobTable.read(path, in: zone))
    }

    /// Reads the file again. If it is not a valid table, the jobs stay as they are.
    nonisolated(nonsending) func reload() async throws {
        do {
            take(try await disk.run { [path, zone] _ in try JobTable.read(path, in: zone) })
        } catch let error as JobTable.Unreadable {
            log.error("\(error); the jobs stay as they are")
            problem = "\(error)"
            throw error
        }
    }

    private func take(_ table: JobTable) {
        log.info("\(path) is read, number of jobs: \(table.jobs.count)")
        problem = nil
        tableHandler(table)
    }

    // MARK: Changes

    /// Reads the file again, from now on, whenever it has been written or replaced.
    func watch() throws {
        let end = path.lastIndex(of: "/")
        let directory = end.map { String(path[...$0]) } ?? "."
        let name = end.map { String(path[path.index(after: $0)...]) } ?? path
        let watcher = try FileWatcher { [unowned self] _, events in
            for event in events {
                switch event.kind {
                case .closedAfterWriting, .movedTo: if event.name == name { lookSoon() }
                // The lost events may have concerned the file.
                case .overflow: lookSoon()
                case .ignored: log.warning("\(directory) has gone; a change of \(name) is seen on SIGHUP only")
                default: break
                }
            }
        }
        try watcher.watch(directory, for: [.closedAfterWriting, .moved])
        try loop.add(watcher, forMode: .common)
        self.watcher = watcher
    }

    private func lookSoon() {
        guard look == nil else { return }
        look = loop.perform(afterDelay: Self.pause, inModes: .common) { [unowned self] in
            look = nil
            loop.task(name: "reload") { [self] in try await reload() }
        }
    }

    func stopWatching() {
        watcher?.invalidate()
        look?.cancel()
    }
}
