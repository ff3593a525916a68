import RunLoopKit
import RunLoopUnix

/// The file of hooks that are not delivered yet. On a thread that may wait for the disk.
///
/// Lines are appended. The file is written anew when it is twice as long as necessary, and when an error has left it in
/// doubt.
final class HookLog {
    /// The hook is not stored, and will not be delivered.
    struct NotStored: Error {
        let reason: any Error
    }

    private(set) var hooks: [Int: Hook] = [:]
    private(set) var lastNumber = 0
    private(set) var length = 0
    private let path: String
    private var file: File
    private var isInDoubt = false
    /// The length from which on the file is written anew.
    private var limit = 256 * 1024

    /// Opens or creates the file, which no other process may use, and cuts off what a crash has left incomplete.
    init(at path: String) throws {
        self.path = path
        file = try Disk.current.open(path, .readingAndWritingLocked)
        let bytes = try file.contents()
        length = LogLine.read(bytes) { line in
            (hooks[line.number], lastNumber) = (line.hook, max(lastNumber, line.number))
        }
        RunLoop.sometimes("the log had a broken end", if: length < bytes.count)
        try file.truncate(to: length)
        try file.sync()
        try Disk.current.syncDirectory(of: path)
    }

    /// Appends a line. A hook outlives a loss of power when this returns; a line without one may be lost.
    ///
    /// - Throws: ``NotStored``; after any other error it is unknown whether the line is in the file.
    func append(_ line: LogLine) throws {
        // Not again in a new file, whatever becomes of the line.
        if line.hook == nil { hooks[line.number] = nil }
        if isInDoubt || length > limit { try writeAnew() }
        let bytes = try line.encoded()
        do {
            try file.write(bytes, at: length)
            if line.hook != nil { try file.sync() }
        } catch {
            // A crash must not bring back what is refused.
            isInDoubt = true
            try file.truncate(to: length)
            try file.sync()
            throw NotStored(reason: error)
        }
        length += bytes.count
        hooks[line.number] = line.hook
    }

    /// Replaces the file by one with the present hooks alone.
    private func writeAnew() throws(NotStored) {
        isInDoubt = true
        do {
            let lines = hooks.values.sorted { $0.number < $1.number }.map { LogLine(number: $0.number, hook: $0) }
            let bytes = try lines.flatMap { try $0.encoded() }
            // After an error it must not take room; after success it has its place.
            defer { try? Disk.current.remove(path + ".new") }
            let new = try Disk.current.open(path + ".new", .readingAndWritingLocked)
            try new.truncate(to: 0)
            try new.write(bytes, at: 0)
            try new.sync()
            try Disk.current.rename(new.path, to: path)
            (file, length) = (new, bytes.count)
            try Disk.current.syncDirectory(of: path)
            (isInDoubt, limit) = (false, max(256 * 1024, 2 * length))
            RunLoop.sometimes("the log was written anew")
        } catch {
            throw NotStored(reason: error)
        }
    }
}
