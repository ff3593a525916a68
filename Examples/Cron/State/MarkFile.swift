import Glibc
import RunLoopKit
import RunLoopUnix

/// The marks of a ledger as a file, which is always complete. All methods block for the disk.
///
/// The file has a line for each job, with tabs between: name, nanoseconds since 1970, dates.
enum MarkFile {
    private static let header = "Cron 1"

    /// A damaged file.
    struct Unreadable: Error, CustomStringConvertible {
        let description: String
    }

    /// - Returns: the marks; empty if there is no file.
    static func read(_ path: String) throws(Unreadable) -> [String: Ledger.Mark] {
        do {
            let bytes = try Disk.current.open(path, .reading).contents()
            return try marks(in: String(decoding: bytes, as: UTF8.self), of: path)
        } catch let error as SystemError where error.errno == ENOENT {
            return [:]
        } catch let error as Unreadable {
            throw error
        } catch {
            throw Unreadable(description: "\(error)")
        }
    }

    private static func marks(in text: String, of path: String) throws(Unreadable) -> [String: Ledger.Mark] {
        var marks: [String: Ledger.Mark] = [:]
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        guard lines.first == Substring(header), lines.last == "" else {
            throw Unreadable(description: "\(path) is not a whole file of this version")
        }
        for (index, line) in lines.enumerated().dropFirst().dropLast() {
            let parts = line.split(separator: "\t")
            guard parts.count == 3, let nanoseconds = Int64(parts[1]) else {
                throw Unreadable(description: "\(path):\(index + 1): this is not a name, a number and dates")
            }
            marks[String(parts[0])] = Ledger.Mark(
                dates: String(parts[2]), date: RunLoop.WallTime(nanoseconds: nanoseconds))
        }
        return marks
    }

    /// Replaces the file, and waits until the new one is on the disk. After an error, either file may exist.
    static func write(_ marks: [String: Ledger.Mark], to path: String) throws(SystemError) {
        var text = header + "\n"
        for (name, mark) in marks.sorted(by: { $0.key < $1.key }) {
            text += "\(name)\t\(mark.date.nanoseconds)\t\(mark.dates)\n"
        }
        let disk = Disk.current
        let new = path + ".new"
        // Left by a failed attempt, or by a crash.
        if disk.exists(new) { try disk.remove(new) }
        let file = try disk.open(new, .readingAndWritingNew)
        try file.write(Array(text.utf8), at: 0)
        try file.sync()
        try disk.rename(new, to: path)
        try disk.syncDirectory(of: path)
    }
}
