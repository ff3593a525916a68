import Glibc
import Logging
import RunLoopKit
import RunLoopUnix

/// Up to which date each job has been dealt with, kept in a file, so that a new start of the daemon goes on from there. On
/// the daemon's loop; what waits for the disk is done on a thread beside it.
final class Ledger {
    /// What is known of a job.
    struct Mark: Hashable, Sendable {
        /// What its dates were; a job with other dates begins anew.
        let dates: String
        /// Up to here they have been dealt with.
        let date: RunLoop.WallTime
    }

    /// What is wrong with the file, while it cannot be written.
    private(set) var problem: String?

    private let path: String?
    private let loop: RunLoop
    private let disk: RunLoop.Remote
    private let log: Logger
    /// Keeps other daemons away from the file.
    private let lock: File?
    private var marks: [String: Mark] = [:]
    /// How often the marks have changed, and which change is the last that is safe.
    private var changes = 0
    private var safeChanges = 0
    private var writing: Task<Void, any Error>?

    /// How long it waits before it tries again to write the file.
    private static let pause = Duration.seconds(1)

    /// - Parameters:
    ///   - path: the file; with `nil` nothing is kept, and everything counts as safe.
    ///   - disk: the thread beside the loop.
    /// - Throws: `SystemError` if there can be no such file, or if another daemon has it.
    init(_ path: String?, on loop: RunLoop, disk: RunLoop.Remote, _ log: Logger) throws(SystemError) {
        (self.path, self.loop, self.disk, self.log) = (path, loop, disk, log)
        lock = if let path { try Disk.current.open(path + ".lock", .locking) } else { nil }
    }

    /// Reads the file, if there is one. It waits for the disk.
    func load() throws(MarkFile.Unreadable) {
        if let path { marks = try MarkFile.read(path) }
    }

    /// What is known of a job.
    subscript(name: String) -> Mark? { marks[name] }

    /// Notes something of a job; `nil` forgets it. It is safe when ``save()`` has returned.
    func note(_ mark: Mark?, of name: String) {
        guard marks[name] != mark else { return }
        marks[name] = mark
        changes += 1
    }

    /// The names of all jobs of which something is known.
    var names: [String] { marks.keys.sorted() }

    // MARK: Saving

    /// Waits until all that has been noted is on the disk. It tries again and again, until its task is cancelled.
    nonisolated(nonsending) func save() async throws {
        guard let path else { return }
        let wanted = changes
        while safeChanges < wanted {
            try Task.checkCancellation()
            // What is noted while one of them writes waits for the next, which writes it all.
            let writing =
                self.writing
                ?? loop.task { [self] in
                    try await write(path)
                } then: { [self] _ in
                    self.writing = nil
                }
            self.writing = writing
            _ = await writing.result
        }
    }

    /// Has it saved, and does not wait for that.
    func saveSoon() {
        loop.task { [self] in try await save() }
    }

    private nonisolated(nonsending) func write(_ path: String) async throws {
        let (marks, changes) = (marks, changes)
        do {
            try await disk.run { _ in try MarkFile.write(marks, to: path) }
            safeChanges = changes
            if problem != nil { log.notice("\(path) can be written again") }
            problem = nil
        } catch let error as SystemError {
            if problem == nil { log.error("\(error); no job is started for a date until it can be noted") }
            problem = "\(error)"
            try await loop.clock.sleep(for: Self.pause)
        }
    }
}
