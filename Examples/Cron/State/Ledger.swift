import Glibc
import Logging
import RunLoopKit
import RunLoopUnix

/// The date up to which each job has been dealt with, kept in a file, so that the daemon continues from there at its
/// next start. Used on the daemon's loop; work that waits for the disk is done on another thread.
final class Ledger {
    /// The state of a job.
    struct Mark: Hashable, Sendable {
        /// The job's dates, as text; a job with other dates begins anew.
        let dates: String
        /// The date up to which the job's dates have been dealt with.
        let date: RunLoop.WallTime
    }

    /// The error, while the file cannot be written.
    private(set) var problem: String?

    private let path: String?
    private let loop: RunLoop
    private let disk: RunLoop.Remote
    private let log: Logger
    /// A lock that keeps other daemons away from the file.
    private let lock: File?
    private var marks: [String: Mark] = [:]
    /// The number of changes of the marks, and the number of the last change that is on the disk.
    private var changes = 0
    private var safeChanges = 0
    private var writing: Task<Void, any Error>?

    /// The pause before another attempt to write the file.
    private static let pause = Duration.seconds(1)

    /// - Parameters:
    ///   - path: the file; with `nil` nothing is kept, and everything counts as safe.
    ///   - disk: the thread for the disk.
    /// - Throws: `SystemError` if the file cannot be created, or if another daemon has locked it.
    init(_ path: String?, on loop: RunLoop, disk: RunLoop.Remote, _ log: Logger) throws(SystemError) {
        (self.path, self.loop, self.disk, self.log) = (path, loop, disk, log)
        lock = if let path { try Disk.current.open(path + ".lock", .readingAndWritingLocked) } else { nil }
    }

    /// Reads the file, if it exists. Blocks for the disk.
    func load() throws(MarkFile.Unreadable) {
        if let path { marks = try MarkFile.read(path) }
    }

    /// Returns the mark of a job.
    subscript(name: String) -> Mark? { marks[name] }

    /// Notes the mark of a job; `nil` removes it. The mark is safe once ``save()`` has returned.
    func note(_ mark: Mark?, of name: String) {
        guard marks[name] != mark else { return }
        marks[name] = mark
        changes += 1
    }

    /// The names of all jobs that have a mark.
    var names: [String] { marks.keys.sorted() }

    // MARK: Saving

    /// Waits until all marks noted so far are on the disk. Tries again and again, until its task is cancelled.
    nonisolated(nonsending) func save() async throws {
        guard let path else { return }
        let wanted = changes
        while safeChanges < wanted {
            try Task.checkCancellation()
            // Marks noted during a write wait for the next one, which writes all of them.
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

    /// Starts saving, without waiting for the end.
    func saveSoon() {
        loop.task { [self] in try await save() }
    }

    private nonisolated(nonsending) func write(_ path: String) async throws {
        let (marks, changes) = (marks, changes)
        do {
            try await disk.run { _ in try MarkFile.write(marks, to: path) }
            safeChanges = changes
            RunLoop.sometimes("the state could be written again", if: problem != nil)
            if problem != nil { log.notice("\(path) can be written again") }
            problem = nil
        } catch let error as SystemError {
            RunLoop.sometimes("the state could not be written")
            if problem == nil { log.error("\(error); no job is started for a date until it can be noted") }
            problem = "\(error)"
            try await loop.clock.sleep(for: Self.pause)
        }
    }
}
